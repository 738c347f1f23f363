"""What of a prediction is kept, and how changes of it are measured: coordinates with a metric.

The coordinates decide what an equivalence class is: two states are in one class when they agree.
They are linear in the logits wherever that is possible, so they stay well conditioned where a model
is certain. The metric is the Euclidean one of the named quantity, carried back to the coordinates:

    logits           all of them; adding a constant to every logit leaves the class
    centred_logits   (I - 11'/q) z, as q - 1 orthonormal contrasts; the same classes as the
                     probabilities, without their saturation
    probabilities    p, whose metric vanishes as the model becomes certain
    fisher           2 sqrt(p): the information metric; KL(p(x) || p(x + v)) = v'gv / 2 + O(v^3)
    log_odds         of one class against all others together
    hidden           the last hidden state at the tokens that the prediction is read from

With `top_k`, the k most probable classes are told apart and all others are one more bin. With
``rest=False`` the others are left free, as the SiMEC authors have it for masked language models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error, unknown_name

Quantity = Literal["logits", "centred_logits", "probabilities", "fisher", "log_odds", "hidden"]
_CONTRASTED = ("centred_logits", "probabilities", "fisher", "log_odds")
MANY = 64  # outputs beyond which only the most probable are told apart
TOP = 10
WIDE = 2048  # outputs beyond which a coordinate each would not fit


@dataclass(frozen=True, eq=False)
class Output:
    """What is kept or measured; `function` of the logits (b c -> b q) stands for the user's own.

    `matrix` is the metric M (q q) of the user's own function; None is the Euclidean one.
    """

    quantity: Quantity = "centred_logits"
    top_k: int | None = None
    rest: bool = True
    function: Callable[[Tensor], Tensor] | None = None
    matrix: Tensor | None = None

    @classmethod
    def parse(cls, given: object, top_k: int | None = None) -> Output | None:
        """What `explore` accepts: a name, a function of the logits, an Output; None stays None."""
        if given is None or isinstance(given, Output):
            return given
        if isinstance(given, str) and given in get_args(Quantity):
            return cls(given, top_k)  # type: ignore[arg-type]  # one of the names, as just checked
        if callable(given):
            return cls(function=given)
        if isinstance(given, str):
            raise ArgumentError(
                unknown_name("output", given, get_args(Quantity), write="output={!r}")
            )
        raise ArgumentError(
            explain_error(
                "this does not say what of the prediction is measured",
                got=f"output={given!r}",
                expected=f"one of {', '.join(get_args(Quantity))}, or a function of the logits",
                instead="output='centred_logits'",
            )
        )

    @classmethod
    def default(cls, classes: int, probabilities: bool, top_k: int | None = None) -> Output:
        """Contrasts of all logits; of many, the Fisher metric of the likeliest and the rest."""
        if not probabilities:
            return cls("logits", top_k)
        return cls("centred_logits", top_k) if classes <= MANY else cls("fisher", top_k or TOP)

    def is_wide(self, classes: int) -> bool:
        """Whether all of very many outputs are asked for, which takes the way through the head."""
        plain = self.function is None and self.quantity not in ("hidden", "log_odds")
        return plain and classes > WIDE and (self.top_k is None or self.top_k >= classes)

    def describe(self) -> str:
        """The output in words."""
        if self.function is not None:
            return getattr(self.function, "__name__", "a function of the logits")
        name = self.quantity.replace("_", " ")
        if self.top_k is None:
            return name
        return f"{name} of the {self.top_k} likeliest" + (" and the rest" if self.rest else "")

    def bind(self, logits: Tensor, classes: Tensor | None = None) -> Coordinates:
        """The coordinates for a batch (b c); `classes` (b) are the ones that log-odds are of."""
        count = logits.shape[-1]
        chosen = None
        if self.quantity == "log_odds":
            found = logits.argmax(dim=-1) if classes is None else classes
            chosen = found[:, None]
        elif self.top_k is not None and self.top_k < count:
            chosen = logits.topk(self.top_k, dim=-1).indices
        if self.is_wide(count):
            raise ArgumentError(
                explain_error(
                    "there are too many outputs for a coordinate each",
                    got=f"output={self.quantity!r} of {count} outputs",
                    expected=f"at most {WIDE}, or the likeliest told apart and the rest as one",
                    instead="top_k=10",
                )
            )
        if self.quantity in _CONTRASTED and self.function is None and count < 2:
            raise ArgumentError(
                explain_error(
                    "a single output has nothing to be compared with",
                    got=f"output={self.quantity!r} of a model with one output",
                    expected="output='logits'",
                    instead="output='logits'",
                )
            )
        return Coordinates(self, chosen)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An output bound to a batch: which classes of each input are told apart (b k; None: all)."""

    output: Output
    chosen: Tensor | None

    def take(self, rows: Tensor) -> Coordinates:
        """The coordinates of these inputs, in their order."""
        if self.chosen is None or len(rows) == len(self.chosen):
            return self
        return replace(self, chosen=self.chosen[rows.to(self.chosen.device)])

    def __call__(self, logits: Tensor) -> Tensor:
        """The coordinates of a prediction in float64 (b c -> b r); level sets are the classes."""
        if self.output.function is not None:
            return self.output.function(logits).double()
        bins = self._bins(logits.double())
        return bins @ contrasts(bins).T if self.output.quantity in _CONTRASTED else bins

    def root(self, y: Tensor) -> Tensor | None:
        """R with R'R the metric in these coordinates at `y` (b q r); None: the identity."""
        if self.output.function is not None:
            return None if self.output.matrix is None else _square_root(self.output.matrix).to(y)
        if self.output.quantity == "log_odds":
            return y.new_full((1, 1), 2**0.5)  # the contrast is the log-odds over sqrt 2
        if self.output.quantity not in ("probabilities", "fisher"):
            return None
        basis = contrasts_of(y.shape[-1] + 1, y.device)  # r q
        p = (y @ basis).softmax(dim=-1)
        if self.output.quantity == "probabilities":  # dp/dy = (diag p - pp') H'
            return p[..., None] * (basis.T - (p @ basis.T)[..., None, :])
        u = p.sqrt()  # the Jacobian of 2 sqrt p is (I - uu') diag(u)
        return u[..., None] * (basis.T - (p @ basis.T)[..., None, :])

    def psi(self, y: Tensor) -> Tensor:
        """The quantity itself, whose Euclidean distances the metric measures (b r -> b q)."""
        if self.output.quantity in ("probabilities", "fisher") and self.output.function is None:
            p = (y @ contrasts_of(y.shape[-1] + 1, y.device)).softmax(dim=-1)
            return p if self.output.quantity == "probabilities" else 2 * p.sqrt()
        root = self.root(y)
        return y if root is None else torch.einsum("...qr,...r->...q", root, y)

    def margin_gradient(self, y: Tensor, classes: Tensor) -> Tensor:
        """The gradient by `y` (b r) of the lead of a class (b) over the strongest other."""
        self._check_classes()
        basis = contrasts_of(y.shape[-1] + 1, y.device)
        contrasted = self.output.quantity in _CONTRASTED
        bins = y @ basis if contrasted else y
        own = torch.nn.functional.one_hot(self._place(classes), bins.shape[-1]).bool()
        rival = bins.masked_fill(own, -torch.inf).argmax(dim=-1)
        lead = own.to(y) - torch.nn.functional.one_hot(rival, bins.shape[-1]).to(y)
        return lead @ basis.T if contrasted else lead

    def class_output(self, y: Tensor, classes: Tensor) -> Tensor:
        """The named quantity of one class an input (b r -> b): centred logits, probabilities..."""
        self._check_classes()
        if self.output.quantity in ("centred_logits", "log_odds"):
            values = y @ contrasts_of(y.shape[-1] + 1, y.device)
        else:
            values = self.psi(y)
        return values.gather(-1, self._place(classes)[:, None])[:, 0]

    def class_gradient(self, y: Tensor, classes: Tensor) -> Tensor:
        """The gradient of `class_output` by `y` (b r)."""
        with torch.enable_grad():
            leaf = y.detach().clone().requires_grad_()
            (found,) = torch.autograd.grad(self.class_output(leaf, classes).sum(), leaf)
        return found

    def _check_classes(self) -> None:
        if self.output.function is not None or self.output.quantity == "hidden":
            raise ArgumentError(
                explain_error(
                    "no class can be told from these coordinates",
                    got=f"output: {self.output.describe()}",
                    expected="an output that is made of the classes' logits",
                    instead="output='centred_logits'",
                )
            )

    def _place(self, classes: Tensor) -> Tensor:
        """Where these classes (b) stand among the bins."""
        if self.chosen is None:
            return classes
        found = (self.chosen == classes[:, None]).long()
        if not found.any(dim=-1).all():
            raise ArgumentError(
                explain_error(
                    "the class is not among those that are told apart",
                    got=f"classes {classes.tolist()}, top_k={self.output.top_k}",
                    expected="one of the likeliest classes",
                    instead="a larger top_k=",
                )
            )
        return found.argmax(dim=-1)

    def _bins(self, logits: Tensor) -> Tensor:
        """The logits that are told apart, and one for all the rest together."""
        if self.chosen is None:
            return logits
        told = logits.gather(-1, self.chosen)
        if not self.output.rest:
            return told
        others = logits.scatter(-1, self.chosen, -torch.inf)
        return torch.cat([told, others.logsumexp(dim=-1, keepdim=True)], dim=-1)


def pulled_back(coordinates: Coordinates, y: Tensor, jacobian: Tensor) -> Tensor:
    """B = R J (b q ...), from the Jacobian of the coordinates (b r ...)."""
    root = coordinates.root(y)
    if root is None:
        return jacobian
    return torch.einsum("bqr,br...->bq...", root.expand(len(y), *root.shape[-2:]), jacobian)


def contrasts(bins: Tensor) -> Tensor:
    """Orthonormal rows that are orthogonal to the constant vector, for these bins."""
    return contrasts_of(bins.shape[-1], bins.device)


@cache
def contrasts_of(count: int, device: torch.device) -> Tensor:
    """The Helmert contrasts (count - 1, count): HH' = I and H1 = 0, so |Hz| = |z - mean z|."""
    index = torch.arange(1, count, dtype=torch.float64)
    below = torch.ones(count - 1, count, dtype=torch.float64).tril()  # row i: i + 1 ones
    below[torch.arange(count - 1), torch.arange(1, count)] = -index
    found: Tensor = below / (index * (index + 1)).sqrt()[:, None]
    return found.to(device)


def _square_root(matrix: Tensor) -> Tensor:
    """R with R'R = M, for M symmetric and positive semidefinite."""
    symmetric = matrix.double()
    values, vectors = torch.linalg.eigh(symmetric)
    size = symmetric.abs().max()
    if (symmetric - symmetric.T).abs().max() > 1e-8 * size or values[0] < -1e-8 * size:
        raise ArgumentError(
            explain_error(
                "this matrix is not a metric",
                got=f"smallest eigenvalue {float(values[0]):.3g}, "
                f"asymmetry {float((symmetric - symmetric.T).abs().max()):.3g}",
                expected="a symmetric, positive semidefinite matrix",
                instead="matrix=None for the Euclidean metric",
            )
        )
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.T
    return root


class Leads(Coordinates):
    """How far each chosen class (b m) leads the strongest other, in logits."""

    def __call__(self, logits: Tensor) -> Tensor:
        assert self.chosen is not None
        z = logits.double()
        own = torch.nn.functional.one_hot(self.chosen, z.shape[-1]).bool()  # b m c
        rival = z[:, None, :].masked_fill(own, -torch.inf).amax(dim=-1)
        return z.gather(-1, self.chosen) - rival
