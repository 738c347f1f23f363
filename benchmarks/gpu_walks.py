"""How long a thousand iterations take on a GPU, and whether more inputs at once cost more.

Absolute times, which hold on the device that the stored result names. Run it from the sources:

    PYTHONPATH=src:benchmarks python benchmarks/gpu_walks.py OUT.json
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import torch
from _claims import Claim
from transformers import BertConfig, BertForSequenceClassification

import pellucid
from pellucid.testing.tiny import word_piece

STEPS = 1000
TEXT = "the film is fine " * 7 + "the film"  # 32 tokens with [CLS] and [SEP]


def bert_base() -> pellucid.adapters.Adapter:
    """BERT-base's shape with random weights and three classes: speed does not depend on them."""
    torch.manual_seed(0)
    tokenizer = word_piece()
    tokenizer.model_max_length = 256
    config = BertConfig(vocab_size=300, num_labels=3, pad_token_id=0)
    return pellucid.adapt(BertForSequenceClassification(config).eval().cuda(), tokenizer)


def seconds(model: pellucid.adapters.Adapter, inputs: list, steps: int) -> tuple[float, float]:
    """The time of a walk from all inputs at once, and its largest drift; the second of two runs."""
    for _ in range(2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        walks = pellucid.explore(model, inputs, steps=steps, save_every=steps)
        torch.cuda.synchronize()
        taken = time.perf_counter() - began
    return taken, max(float(walk.drift.max()) for walk in walks)


def claims() -> list[Claim]:
    found: list[Claim] = []
    digits = pellucid.models.sample_images()[0]
    for dtype, goals in (("float64", (3.0, 20.0)), ("float32", (3.0, 20.0))):
        model = pellucid.load("pellucid/digits-vit", dtype=dtype, device="cuda")
        one, drift = seconds(model, [digits], STEPS)
        what = f"{STEPS} iterations, digits-vit, {dtype}, largest drift {drift:.1e}"
        found.append(Claim(what, one, "allowed", goals[0], "s", 1.0, 0.0))
        many, drift = seconds(model, [digits] * 64, STEPS)
        what = f"64 inputs at once, digits-vit, {dtype}, largest drift {drift:.1e}"
        found.append(Claim(what, many, "one input", one, "s", 3.0, 0.0))
        bert = bert_base()
        bert.module.to(getattr(torch, dtype))
        one, drift = seconds(bert, [TEXT], STEPS)
        what = f"{STEPS} iterations, BERT-base, 32 tokens, {dtype}, largest drift {drift:.1e}"
        found.append(Claim(what, one, "allowed", goals[1], "s", 1.0, 0.0))
        many, drift = seconds(bert, [TEXT] * 64, 200)
        what = f"64 inputs at once, BERT-base, a step, {dtype}, largest drift {drift:.1e}"
        found.append(Claim(what, 1e3 * many / 200, "allowed", 60.0, "ms", 1.0, 0.0))
    return found


def main() -> None:
    found = claims()
    for claim in found:
        verdict = "reached" if claim.reached else "NOT reached"
        print(f"{claim.what}: {claim.ours:.3g} {claim.unit} ({claim.other:.3g}): {verdict}")
    provenance = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    rows = [asdict(claim) | {"ratio": claim.ratio, "reached": claim.reached} for claim in found]
    text = json.dumps({"provenance": provenance, "claims": rows}, indent=2)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
