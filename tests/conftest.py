"""What all tests share: no network, one thread, repeatable examples, and models built once."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when huggingface_hub is first imported
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from functools import cache

import pytest
import torch
from hypothesis import settings

import pellucid
from pellucid.testing.tiny import build

torch.set_num_threads(1)
settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, max_examples=50
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def tiny():
    """A tiny model by family name, built once; tests that change a model build their own."""
    return cache(build)


@pytest.fixture(scope="session")
def reviews():
    return pellucid.load("pellucid/reviews-bert")


@pytest.fixture(scope="session")
def digits():
    return pellucid.load("pellucid/digits-vit")
