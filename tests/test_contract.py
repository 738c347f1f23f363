"""Every method, metric and adapter against every family of models: the promises of the package."""

from __future__ import annotations

import pytest

from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.testing import check_adapter, check_method, check_metric
from pellucid.testing.tiny import FAMILIES, build


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
    params = {"deletion": {"steps": 6}}.get(metric, {})
    check_metric(metric, lambda dtype: build(family, dtype=dtype), **params)
