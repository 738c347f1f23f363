"""Watching a model work without changing it: attention probabilities and the residual stream."""
