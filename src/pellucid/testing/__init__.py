"""The contracts that every method, metric and adapter keeps; third parties can run them too."""

from pellucid.testing.contract import check_adapter, check_method, check_metric, fingerprint

__all__ = ["check_adapter", "check_method", "check_metric", "fingerprint"]
