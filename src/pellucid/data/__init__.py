"""Data sets as objects: samples with their truth, read when asked for, and what moves with them."""

from __future__ import annotations

from pellucid.data.dataset import Dataset, of
from pellucid.data.files import csv, folder
from pellucid.data.labels import check_labels
from pellucid.data.masks import boxes_to_mask, move_mask
from pellucid.data.placement import move_boxes, to_original
from pellucid.data.published import (
    hatexplain,
    imdb,
    pets,
    sentence_polarity,
    winobias,
    yelp_hat,
)
from pellucid.data.sample import Sample
from pellucid.data.table import from_datasets, parquet

__all__ = [
    "Dataset",
    "Sample",
    "boxes_to_mask",
    "check_labels",
    "csv",
    "folder",
    "from_datasets",
    "hatexplain",
    "imdb",
    "move_boxes",
    "move_mask",
    "of",
    "parquet",
    "pets",
    "sentence_polarity",
    "to_original",
    "winobias",
    "yelp_hat",
]
