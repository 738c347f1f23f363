"""What SLALOM's paper measures, cut into cells: each trains or explains one thing, and is a record.

A cell is named by its path. Cells of `models/` leave a folder beside the records, which those of
`texts/` and `runtime/` load.
"""

from __future__ import annotations

import csv
import gzip
import html
import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import pellucid
from pellucid import synthetic
from pellucid.surrogates import NaiveBayes

SHAPES = ("distilbert", "bert", "gpt2")
DATA = {"imdb": 2, "yelp": 6}  # layers of the models, as in the paper


@dataclass(frozen=True)
class Size:
    """How much of everything; `full` has the paper's numbers where no comment says otherwise."""

    layers: tuple[int, ...] = (1, 2, 6, 12)
    seeds: int = 3  # 5 in the paper
    width: int = 768
    heads: int = 12
    samples: int = 25_000  # linear data: 5 epochs of 5000
    batch: int = 20
    lr: float = 5e-5
    fc: tuple[int, ...] = (200, 400, 1000)
    fitted: int = 10_000
    fresh: int = 500
    slalom_seeds: int = 2  # 5
    slalom_width: int = 192  # 768
    slalom_samples: int = 400_000  # 20 epochs of 20,000
    slalom_batch: int = 200  # 20
    slalom_lr: float = 5e-4  # 5e-5
    vocabularies: tuple[int, ...] = (16, 32, 64, 128, 200)
    reviews: int = 45_000  # 5000 of IMDB, 5000 of Yelp
    epochs: int = 3  # 5
    review_width: int = 192  # 768
    review_batch: int = 64  # 5
    longest: int = 256  # 512
    counted: int = 2000  # 5000 reviews for naive Bayes
    texts: int = 25  # 100
    explaining: int = 1000  # 5000 samples of LIME, SHAP and SLALOM
    grid: tuple[int, ...] = (1000, 2000)  # of Tables 13 and 14; to 10,000
    timed: int = 3  # 50 texts


SIZES = {
    "full": Size(),
    "smoke": Size(
        layers=(1,),
        seeds=1,
        width=24,
        heads=4,
        samples=2500,
        batch=50,
        lr=5e-3,
        fc=(100,),
        fitted=1000,
        fresh=200,
        slalom_seeds=1,
        slalom_width=24,
        slalom_samples=2500,
        slalom_batch=50,
        slalom_lr=5e-3,
        vocabularies=(16,),
        reviews=600,
        epochs=1,
        review_width=24,
        review_batch=32,
        longest=64,
        counted=200,
        texts=4,
        explaining=200,
        grid=(200,),
        timed=2,
    ),
}

# The name of a row of the tables: a method and its parameters. `SAMPLED` also take a number of
# samples.
SAMPLED: dict[str, tuple[str, dict[str, Any]]] = {
    "eff": ("slalom", {"preset": "eff"}),
    "fidel": ("slalom", {"preset": "fidel"}),
    "LIME": ("lime", {}),
    "SHAP": ("kernel_shap", {}),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "IG": ("integrated_gradients", {"steps": 30}),
    "Grad": ("gradient", {}),
    "LRP": ("attn_lrp", {}),
    "random": ("random", {}),
}
READINGS = {"v": "values", "s": "importance", "lin": "linear"}  # of a SLALOM


@dataclass(frozen=True)
class Place:
    """Where data are read, where models are left, and on what device they run."""

    size: str
    data: str
    models: str
    device: str


def names(size: Size) -> list[list[str]]:
    """All cells, in rounds of which each needs the ones before. `runtime` is a round of its own.

    Further seeds stand last, so that a run that is stopped has something of every table.
    """
    methods = [*SAMPLED, *OTHERS]
    known = [f"models/{data}/{shape}" for data in reversed(DATA) for shape in SHAPES]
    known += [f"linear/fc/{width}/0" for width in size.fc]
    known += ["control/sum/exact/0", *(f"control/shuffled/{shape}/0" for shape in SHAPES)]
    layers = 2 if 2 in size.layers else size.layers[0]
    known += [f"slalom/exact/0/{max(size.vocabularies)}/0"]
    many = [f"slalom/distilbert/{layers}/{words}/0" for words in size.vocabularies[:-1]]
    texts = [f"texts/{data}/{shape}/{m}" for m in methods for data in DATA for shape in SHAPES]
    texts += [f"samples/imdb/bert/eff/{n}" for n in (size.grid[0] // 2, *size.grid)]
    texts += ["samples/imdb/bert/SHAP/0"]  # which is as many as its authors' code draws
    timed = [f"runtime/imdb/distilbert/{m}/{n}" for n in size.grid for m in SAMPLED]
    timed += [f"runtime/imdb/distilbert/{m}/0" for m in OTHERS]
    rounds = [[*known, *_trained_with(size, 0), *many], texts, timed]
    return [*rounds, *(_trained_with(size, seed) for seed in range(1, size.seeds))]


def _trained_with(size: Size, seed: int) -> list[str]:
    """The Transformers on synthetic data of one seed, the deep ones first: they take longest."""
    deep = sorted(size.layers, reverse=True)
    found = [f"linear/{shape}/{layers}/{seed}" for layers in deep for shape in SHAPES]
    if seed < size.slalom_seeds:
        words = max(size.vocabularies)
        found += [f"slalom/{shape}/{layers}/{words}/{seed}" for layers in deep for shape in SHAPES]
    return found


def run(name: str, place: Place) -> dict[str, Any]:
    """The record of one cell."""
    transformers.utils.logging.disable_progress_bar()  # of loading and saving
    kind, *rest = name.split("/")
    return CELLS[kind](place, SIZES[place.size], *rest)


# ---- models of known truths ----------------------------------------------------------------------


def linear(place: Place, size: Size, shape: str, number: str, seed: str) -> dict[str, Any]:
    """Figures 3, 7 and 9, and Table 6, on one model, of so many layers or, for "fc", so wide."""
    data = synthetic.linear_data(size.samples, seed=int(seed))
    options = {"batch": size.batch, "lr": size.lr, "width": size.width, "heads": size.heads}
    layers = int(number)
    if shape == "fc":
        layers, options = 2, {"batch": size.batch, "lr": 1e-3, "width": int(number)}
    return _on_linear(_trained(place, shape, layers, data, seed, **options), size)


def control(place: Place, size: Size, kind: str, shape: str, seed: str) -> dict[str, Any]:
    """The same on a model that is a sum, and on models that learnt shuffled labels."""
    if kind == "sum":
        return _on_linear(synthetic.planted(synthetic.linear_truth()), size)
    data = synthetic.linear_data(size.samples, seed=int(seed)).shuffled()
    options = {"batch": size.batch, "lr": size.lr, "width": size.width, "heads": size.heads}
    return _on_linear(_trained(place, shape, size.layers[0], data, seed, **options), size)


def _trained(
    place: Place, shape: str, layers: int, data: synthetic.Data, seed: str, **options: Any
) -> Any:
    options |= {"epochs": 1, "device": place.device, "seed": int(seed), "progress": False}
    return synthetic.train(shape, layers, data=data, **options)


def _on_linear(model: Any, size: Size) -> dict[str, Any]:
    fitted = synthetic.linear_data(size.fitted, seed=1000)
    fresh = synthetic.linear_data(size.fresh, seed=1001)
    log_odds = synthetic.asking(model)(fresh.sequences)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    return {
        "loss": float(loss(log_odds, fresh.labels.double())),
        "least_loss": float(loss(fresh.log_odds, fresh.labels.double())),
        "repetition": synthetic.repetition_row(model),
        "lengths": synthetic.length_row(model),
        "counterexample": synthetic.counterexample_row(model),
        "surrogates": synthetic.surrogate_row(model, fitted, fresh),
    }


def slalom(
    place: Place, size: Size, shape: str, layers: str, vocabulary: str, seed: str
) -> dict[str, Any]:
    """Figures 4c and d, Tables 7 and 8, on one model; "exact" is the truth, not a model of it."""
    truth = synthetic.slalom_truth(word_scores(place.data))
    many = int(vocabulary)

    def drawn(n: int, seed: int) -> synthetic.Data:
        return synthetic.slalom_data(n, many, seed, truth=truth)

    options = {"width": size.slalom_width, "heads": size.heads, "lr": size.slalom_lr}
    options |= {"batch": size.slalom_batch}
    if shape == "exact":
        model = synthetic.planted(drawn(1, 0).truth)
    else:
        data = drawn(size.slalom_samples, int(seed))
        model = _trained(place, shape, int(layers), data, seed, **options)
    return synthetic.recovery_row(model, drawn(size.fitted, 1000), drawn(200, 1001))


def word_scores(folder: str) -> dict[str, float]:
    """Bag-of-words scores of 200 words of IMDB, drawn from those that occur twenty times.

    Their values and importances then spread as in Figure 8.
    """
    training, _ = reviews(folder)
    rows = [(re.findall(r"[a-z]+", text), label) for text, label in training[:5000]]
    counts = Counter(word for words, _ in rows for word in words)
    known = sorted(word for word, count in counts.items() if count >= 20)
    drawn = np.random.default_rng(0).permutation(len(known))[:200]
    chosen = {known[i] for i in drawn}
    sequences = [[word for word in words if word in chosen] for words, _ in rows]
    found = NaiveBayes.fit(sequences, [2.0 * label - 1 for _, label in rows], alpha=40.0)
    scores = dict(zip(map(str, found.units), found.weight.tolist(), strict=True))
    return {known[i]: scores[known[i]] for i in drawn}


# ---- models of reviews ---------------------------------------------------------------------------


@cache
def reviews(folder: str) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Reviews of films in lower case with their labels: 45,000 to train, the rest to test."""
    found: dict[str, int] = {}
    with gzip.open(Path(folder) / "reviews.csv.gz", "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            text = html.unescape(re.sub(r"<br\s*/?>", " ", row["review"]))
            found.setdefault(" ".join(text.lower().split()), int(row["sentiment"] == "positive"))
    rows = list(found.items())
    order = np.random.default_rng(42).permutation(len(rows))
    shuffled = [rows[i] for i in order]
    return shuffled[:45_000], shuffled[45_000:]


@cache
def restaurants(folder: str) -> tuple[list[Any], list[Any]]:
    """Reviews of restaurants with what people marked: a hundred to test, the rest to train."""
    rows = json.loads((Path(folder) / "yelp_hat.json").read_text(encoding="utf-8"))
    order = np.random.default_rng(42).permutation(len(rows)).tolist()
    several = [i for i in order if len(rows[i][2]) >= 2][:100]
    chosen = set(several)
    return [rows[i] for i in order if i not in chosen], [rows[i] for i in several]


def model(place: Place, size: Size, data: str, shape: str) -> dict[str, Any]:
    """Train and leave a model of reviews; those of restaurants are learnt beside those of films."""
    training, testing = reviews(place.data)
    rows = training[: size.reviews]
    if data == "yelp":
        own, testing = restaurants(place.data)
        rows = [*rows, *((text, label) for text, label, _ in own)]
    texts, labels = zip(*rows, strict=True)
    trained = synthetic.train_reviews(
        texts,
        labels,
        shape,
        DATA[data],
        epochs=size.epochs,
        batch=size.review_batch,
        width=size.review_width,
        heads=size.heads,
        longest=size.longest,
        device=place.device,
        progress=False,
    )
    folder = Path(place.models) / data / shape
    trained.module.save_pretrained(folder)
    trained.reader.tokenizer.save_pretrained(folder)
    correct = [
        (one.prediction["positive"] > 0.5) == bool(label)
        for one, (_, label, *_) in zip(
            _explained(trained, [row[0] for row in testing[:500]], "Grad"),
            testing[:500],
            strict=True,
        )
    ]
    record = {"accuracy": sum(correct) / len(correct), "tested": len(correct)}
    if data == "imdb":
        counted = training[: size.counted]
        weights = synthetic.bag_of_words(trained, *zip(*counted, strict=True))
        (folder / "weights.json").write_text(json.dumps(weights), encoding="utf-8")
    return record


def _explained(model: Any, texts: list[str], name: str, many: int = 0) -> list[Any]:
    method, params = _method(name, many)
    options = {"long": "truncate", "batch_size": 64, "progress": False}
    goal = pellucid.Target.log_odds("positive")
    return pellucid.explain(model, texts, method=method, target=goal, **options, **params)


# ---- explanations of reviews ---------------------------------------------------------------------


def texts(place: Place, size: Size, data: str, shape: str, name: str) -> dict[str, Any]:
    """Tables 1, 9 to 11 and Figure 6, of one method on one model."""
    model = _loaded(place, data, shape)
    read, labels, marks = _tested(place, size, data)
    explanations = _explained(model, read, name, size.explaining)
    named = {"": explanations}
    if "importance" in explanations[0].extras:
        named = {
            short: [synthetic.reading(one, extra) for one in explanations]
            for short, extra in READINGS.items()
        }
    record: dict[str, Any] = {"n": len(read)}
    if data == "imdb":
        options = {"sets": 20}
        record["fidelity"] = _row(model, explanations, "removal_fidelity", **options)
        folder = Path(place.models) / data / shape
        weights = json.loads((folder / "weights.json").read_text(encoding="utf-8"))
    for short, some in named.items():
        if data == "imdb":
            row = _row(model, some, "naive_bayes_correlation", weights=weights)
            record[f"naive_bayes {short}".strip()] = row
        else:
            row = _row(model, some, "attention_auroc", truth=marks)
            record[f"attention {short}".strip()] = row
        if short != "s":
            record |= _removals(model, some, labels, short)
    return record


def _removals(model: Any, some: list[Any], labels: list[int], short: str) -> dict[str, Any]:
    """Insertion and deletion, read for the label."""
    own = [one if label else synthetic.turned(one) for one, label in zip(some, labels, strict=True)]
    return {
        f"{metric} {short}".strip(): _row(model, own, f"text_{metric}")
        for metric in ("insertion", "deletion")
    }


def samples(
    place: Place, size: Size, data: str, shape: str, name: str, many: str
) -> dict[str, Any]:
    """Table 14: deletion by how many samples an explanation is fitted to."""
    model = _loaded(place, data, shape)
    read, labels, _ = _tested(place, size, data)
    found = _explained(model, read, name, int(many))
    if name == "eff":
        found = [synthetic.reading(one, "linear") for one in found]
    return _removals(model, found, labels, "")


def runtime(
    place: Place, size: Size, data: str, shape: str, name: str, many: str
) -> dict[str, Any]:
    """Tables 2 and 13: what one explanation costs."""
    model = _loaded(place, data, shape)
    read, _, _ = _tested(place, size, data)
    method, params = _method(name, int(many))
    read = read[: size.timed]
    options = {"warm": 1, "batch_size": 512, "long": "truncate"}
    return synthetic.runtime_row(model, read, method, **options, **params)


def _method(name: str, many: int) -> tuple[str, dict[str, Any]]:
    method, params = (SAMPLED | OTHERS)[name]
    return method, params | ({"samples": many} if name in SAMPLED else {})


def _loaded(place: Place, data: str, shape: str) -> Any:
    return pellucid.load(Path(place.models) / data / shape, device=place.device)


def _tested(place: Place, size: Size, data: str) -> tuple[list[str], list[int], list[Any]]:
    """Texts of more than ten words, their labels, and what people marked in them."""
    if data == "yelp":
        rows = restaurants(place.data)[1][: size.texts]
    else:
        found = [row for row in reviews(place.data)[1] if len(row[0].split()) > 10]
        rows = [(*row, None) for row in found[: size.texts]]
    return tuple(map(list, zip(*rows, strict=True)))  # type: ignore[return-value]


def _row(model: Any, explanations: list[Any], metric: str, **options: Any) -> dict[str, float]:
    return synthetic.measured_row(model, explanations, metric, batch_size=256, **options)


CELLS = {
    "linear": linear,
    "control": control,
    "slalom": slalom,
    "models": model,
    "texts": texts,
    "samples": samples,
    "runtime": runtime,
}
