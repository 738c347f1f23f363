"""What a step costs: against the passes it needs, and against Algorithm 1 as a textbook has it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch
from _claims import Claim, timed
from _naive import prediction, step
from transformers import BertConfig, BertForSequenceClassification

import pellucid
from pellucid import Target
from pellucid._case import Case
from pellucid.explorer.explore import Request
from pellucid.explorer.plan import Plan, plan
from pellucid.explorer.settings import resolve
from pellucid.explorer.space import find_space
from pellucid.geometry.jacobian import reverse_rows
from pellucid.geometry.outputs import contrasts_of
from pellucid.testing.tiny import word_piece

TEXT = "the film is fine " * 7 + "the film"  # 32 tokens with [CLS] and [SEP]
NAMES = {"digits": "digits-vit, 50 tokens, 10 classes", "bert": "BERT-base, 32 tokens, 3 classes"}


def model(kind: str, dtype: str) -> tuple[pellucid.adapters.Adapter, object]:
    """The model and one input; BERT-base has random weights, on which speed does not depend."""
    if kind == "digits":
        digits = pellucid.load("pellucid/digits-vit", dtype=dtype)
        return digits, pellucid.models.sample_images()[0]
    torch.manual_seed(0)
    tokenizer = word_piece()
    tokenizer.model_max_length = 256
    module = BertForSequenceClassification(
        BertConfig(vocab_size=300, num_labels=3, pad_token_id=0)
    ).eval()
    return pellucid.adapt(module.to(getattr(torch, dtype)), tokenizer), TEXT


def prepared(adapter: pellucid.adapters.Adapter, raw: object, **rules: object) -> Plan:
    """A walk that is about to begin."""
    batch = adapter.encode([raw], Target.predicted())
    case = Case(adapter, batch, Target.predicted())
    preset = rules.pop("preset", None)
    settings = resolve("stay", preset, rules)
    target = Target.predicted()
    return plan(
        case, Request(adapter, "stay", target, settings, 10, None, "embedding", None, 1, 10, 0)
    )


def claims() -> list[Claim]:
    found: list[Claim] = []
    for kind, repeats, goal in (("digits", 40, 0.5), ("bert", 7, 0.25)):
        for dtype in ("float64", "float32"):
            found += _claims_of(kind, dtype, repeats, goal)
    found += [_memory(kind) for kind in NAMES]
    return found


def _claims_of(kind: str, dtype: str, repeats: int, goal: float) -> list[Claim]:
    adapter, raw = model(kind, dtype)
    fresh = prepared(adapter, raw, preset="paper", output="centred_logits")
    kept = prepared(adapter, raw)
    for walk in (fresh, kept):
        walk.stepper.begin(walk.state)
    rows = torch.arange(1)
    case, space = fresh.case, find_space(adapter, "embedding")
    origin = space.start(case.batch)
    function = prediction(case, space)
    contrast = contrasts_of(case.rows.shape[-1], origin.device).to(origin)
    generator = torch.Generator().manual_seed(0)

    def passes() -> None:
        """One forward and the q - 1 reverse rows that a fresh metric needs."""
        leaf = origin.clone().requires_grad_()
        reverse_rows(function(leaf) @ contrast.T, leaf)

    def fresh_step() -> None:
        fresh.stepper.step(fresh.state, rows)

    def kept_step() -> None:
        kept.stepper.step(kept.state, rows)

    def naive() -> None:
        step(function, origin, case.content, 1e-3, generator)

    where = f"{NAMES[kind]}, {dtype}"
    return [
        timed(
            f"a step with a fresh metric: {where}",
            fresh_step,
            "one forward and its q - 1 reverse rows",
            passes,
            goal=1.15,
            repeats=repeats,
        ),
        timed(
            f"a step with a fresh metric: {where}",
            fresh_step,
            "jacrev and a dense eigh a token",
            naive,
            goal=goal,
            repeats=repeats,
        ),
        timed(
            f"a corrected step, the default: {where}",
            kept_step,
            "one forward and its q - 1 reverse rows",
            passes,
            goal=1.15,
            repeats=repeats,
        ),
        timed(
            f"a corrected step, the default: {where}",
            kept_step,
            "jacrev and a dense eigh a token",
            naive,
            goal=goal,
            repeats=repeats,
        ),
    ]


# ---- memory --------------------------------------------------------------------------------------


def _memory(kind: str) -> Claim:
    """Peak resident memory of a step above that of a forward, each in a process of its own."""
    ours, naive = (
        int(
            subprocess.run(
                [sys.executable, __file__, kind, which], capture_output=True, text=True, check=True
            ).stdout.split()[-1]
        )
        for which in ("ours", "naive")
    )
    what = f"peak memory of a step above a forward: {NAMES[kind]}, float64"
    return Claim(what, ours / 1024, "jacrev and a dense eigh a token", naive / 1024, "MiB", 0.25, 0)


def _peak(kind: str, which: str) -> int:
    """How much a step raises the peak, in kB."""
    torch.set_num_threads(1)
    adapter, raw = model(kind, "float64")
    ours = which == "ours"
    walk = prepared(adapter, raw, preset="paper", output="centred_logits") if ours else None
    batch = adapter.encode([raw], Target.predicted())
    case, space = Case(adapter, batch, Target.predicted()), find_space(adapter, "embedding")
    origin = space.start(batch)
    with torch.no_grad():
        space.output(batch, origin)
    before = _forgotten_peak()
    if walk is not None:
        walk.stepper.begin(walk.state)
        walk.stepper.step(walk.state, torch.arange(1))
    else:
        generator = torch.Generator().manual_seed(0)
        step(prediction(case, space), origin, batch.content, 1e-3, generator)
    return _resident("VmHWM") - before


def _forgotten_peak() -> int:
    """Let the peak begin anew at what is resident now, and say how much that is."""
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def _resident(what: str) -> int:
    """A line of what Linux says of this process, in kB."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


if __name__ == "__main__":
    print(_peak(*sys.argv[1:3]))
