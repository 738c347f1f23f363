"""What removing tokens costs beyond the forward passes, and beside the libraries of lime and shap.

Needs the sentiment model of the measuring folder (PELLUCID_MEASURING). A library that is not
installed is named, and its row left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import torch
from _claims import Claim, timed
from _data import FOLDER, reviews

import pellucid
from pellucid import Target
from pellucid._case import Case
from pellucid.adapters import TorchAdapter
from pellucid.methods import METHODS

TOKENS, SETS, SAMPLES, AT_ONCE = 80, 300, 400, 8
TARGET = Target.log_odds()


def claims() -> list[Claim]:
    model = pellucid.load(FOLDER / "models" / "minilm_sentiment")
    text = _text(model)
    found = [_dropping(model, text)]
    found += [_method(model, text, name) for name in ("kernel_shap", "lime")]
    for library, compare in (("shap", _shap), ("lime", _lime)):
        if find_spec(library) is None:
            print(f"{library} is not installed: its row is left out (pip install {library})")
        else:
            found.append(compare(model, text))
    return found


def _text(model: TorchAdapter) -> str:
    """The beginning of a review, of as many tokens as are measured with the model's own."""
    tokenizer = model.reader.tokenizer
    for text in reviews(20, seed=0, longest=600):
        found = tokenizer(text, return_offsets_mapping=True)
        if len(found["input_ids"]) > TOKENS:
            return text[: found["offset_mapping"][TOKENS - 2][1]]
    raise SystemExit("no review is long enough")


# ---- ours ----------------------------------------------------------------------------------------


def _dropping(model: TorchAdapter, text: str) -> Claim:
    batch = model.encode([text], TARGET)
    generator = torch.Generator().manual_seed(0)
    size = torch.randint(1, TOKENS - 2, (SETS, 1), generator=generator)
    keep = torch.rand(SETS, batch.mask.shape[1], generator=generator).argsort(dim=1) < size

    def ours() -> None:
        Case(model, batch, TARGET, batch_size=AT_ONCE).drop(keep[None])

    what = f"{SETS} sets of {TOKENS} tokens, deleted"
    return _beside_its_forwards(model, what, ours, goal=1 / 0.9)


def _method(model: TorchAdapter, text: str, name: str) -> Claim:
    batch = model.encode([text], TARGET)

    def ours() -> None:
        case = Case(model, batch, TARGET, batch_size=AT_ONCE, spec=METHODS[name])
        METHODS[name](case, samples=SAMPLES)

    what = f"{name}, {SAMPLES} samples of {TOKENS} tokens"
    return _beside_its_forwards(model, what, ours, goal=1.1)


def _beside_its_forwards(
    model: TorchAdapter, what: str, ours: Callable[[], None], goal: float
) -> Claim:
    """Ours against the very batches that it sent through the model, made beforehand."""
    batches: list[dict[str, torch.Tensor]] = []
    handle = model.module.register_forward_pre_hook(
        lambda module, args, kwargs: batches.append(dict(kwargs)), with_kwargs=True
    )
    ours()
    handle.remove()
    evaluations = sum(len(inputs["input_ids"]) for inputs in batches)

    def raw() -> None:
        with torch.no_grad():
            for inputs in batches:
                model.module(**inputs)

    against = f"its {evaluations} forwards, raw, in the same batches"
    return timed(what, ours, against, raw, goal=goal, repeats=5)


# ---- theirs --------------------------------------------------------------------------------------


def _shap(model: TorchAdapter, text: str) -> Claim:
    import shap

    ids = np.array(model.reader.tokenizer(text)["input_ids"])
    players = len(ids) - 2
    asked = [0]

    def answer(masks: np.ndarray) -> np.ndarray:
        asked[0] += len(masks)
        own = np.pad(masks.astype(bool), ((0, 0), (1, 1)), constant_values=True)
        return _log_odds(model, [ids[row].tolist() for row in own])

    def theirs() -> None:
        explainer = shap.KernelExplainer(answer, np.zeros((1, players)), seed=0)
        explainer.shap_values(np.ones((1, players)), nsamples=SAMPLES, l1_reg=False, silent=True)

    return _beside_theirs(model, text, "kernel_shap", {}, theirs, asked, f"shap {shap.__version__}")


def _lime(model: TorchAdapter, text: str) -> Claim:
    from lime.lime_text import LimeTextExplainer

    asked = [0]

    def answer(texts: list[str]) -> np.ndarray:
        asked[0] += len(texts)
        found = _log_odds(model, model.reader.tokenizer(list(texts))["input_ids"])
        return np.stack([-found, found], axis=1)

    def theirs() -> None:
        explainer = LimeTextExplainer(random_state=0)
        explainer.explain_instance(text, answer, num_features=10, num_samples=SAMPLES)

    params = {"unit": "type", "features": 10}
    return _beside_theirs(model, text, "lime", params, theirs, asked, "the library lime")


def _log_odds(model: TorchAdapter, rows: list[list[int]]) -> np.ndarray:
    """The model as one calls it: padded batches, in the order that was asked for."""
    found = []
    for start in range(0, len(rows), AT_ONCE):
        inputs = model.reader.tokenizer.pad(
            {"input_ids": rows[start : start + AT_ONCE]}, return_tensors="pt"
        )
        with torch.no_grad():
            logits = model.module(**inputs).logits
        found.append((logits[:, 1] - logits[:, 0]).double().numpy())
    return np.concatenate(found)


def _beside_theirs(
    model: TorchAdapter,
    text: str,
    name: str,
    params: dict[str, object],
    theirs: Callable[[], None],
    asked: list[int],
    library: str,
) -> Claim:
    """Milliseconds an evaluation, each with all that it does besides."""
    batch = model.encode([text], TARGET)

    def ours() -> Case:
        case = Case(model, batch, TARGET, batch_size=AT_ONCE, spec=METHODS[name])
        METHODS[name](case, samples=SAMPLES, **params)
        return case

    evaluations = int(ours().meter.forwards.sum())
    asked[0] = 0
    theirs()
    answered = asked[0]
    what = f"{name}, {SAMPLES} samples of {TOKENS} tokens, an evaluation"
    whole = timed(what, ours, f"{library}, an evaluation", theirs, goal=1.0, repeats=3)
    one, other = whole.ours / evaluations, whole.other / answered
    return replace(whole, ours=one, other=other, spread=whole.spread * answered / evaluations)
