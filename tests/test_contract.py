"""Every method, metric and adapter against every family of models: the promises of the package."""

from __future__ import annotations

import pytest
import torch
import transformers

from pellucid._spec import bound_parameters
from pellucid.adapters import adapt
from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.testing import check_adapter, check_method, check_metric
from pellucid.testing.tiny import FAMILIES, build, byte_bpe, word_piece


@pytest.mark.parametrize("family", FAMILIES)
def test_adapter_keeps_its_promises(family):
    check_adapter(lambda dtype: build(family, dtype=dtype))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", METHODS)
def test_method_keeps_its_promises(method, family):
    check_method(method, lambda dtype: build(family, dtype=dtype))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("metric", METRICS)
def test_metric_keeps_its_promises(metric, family):
    params = {"steps": 6} if "steps" in bound_parameters(METRICS[metric], {}) else {}
    check_metric(metric, lambda dtype: build(family, dtype=dtype), **params)


OTHER_HEADS = {  # of families that the table has with one head; the adapter is what differs
    "RobertaForMaskedLM": ("roberta", word_piece),
    "ElectraForMaskedLM": ("electra", word_piece),
    "ModernBertForMaskedLM": ("modernbert", word_piece),
    "Qwen2ForCausalLM": ("qwen2", byte_bpe),
    "Qwen3ForSequenceClassification": ("qwen3-lm", byte_bpe),
}


@pytest.mark.parametrize("head", OTHER_HEADS)
def test_every_head_of_a_family_keeps_its_promises(head, tiny):
    family, tokenizer = OTHER_HEADS[head]
    config = tiny(family).module.config

    def build_head(dtype):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = getattr(transformers, head)(config)
        return adapt(module.eval().to(dtype), tokenizer(), name=head)

    assert build_head(torch.float32).offers == tiny(family).offers
    check_adapter(build_head)
    for method in ("gradient_x_input", "rollout"):
        check_method(method, build_head)
