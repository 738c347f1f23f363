"""The page of SLALOM's tables: the paper's numbers, ours beside them, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

Cells = dict[str, dict[str, Any]]
SHAPES = {"distilbert": "DistilBERT", "bert": "BERT", "gpt2": "GPT-2"}

# Leemann et al., TMLR 2024. Table 6: linear, GAM, SLALOM; Tables 7 and 8: logits, parameters.
TABLE_6 = {
    ("gpt2", 1): (20.31, 48.78, 16.92),
    ("gpt2", 2): (24.81, 54.33, 22.17),
    ("gpt2", 6): (32.66, 57.08, 21.59),
    ("gpt2", 12): (25.74, 54.36, 20.25),
    ("distilbert", 1): (28.28, 44.43, 10.83),
    ("distilbert", 2): (32.58, 53.87, 16.82),
    ("distilbert", 6): (31.49, 49.35, 17.26),
    ("distilbert", 12): (50.82, 71.64, 27.50),
    ("bert", 1): (26.33, 43.30, 7.34),
    ("bert", 2): (28.43, 48.28, 9.92),
    ("bert", 6): (50.82, 68.23, 23.99),
    ("bert", 12): (44.58, 51.38, 18.77),
}
TABLES_7_8 = {
    ("distilbert", 1): ("0.002", 0.092),
    ("distilbert", 2): ("0.003", 0.094),
    ("distilbert", 6): ("0.001", 0.124),
    ("distilbert", 12): ("<0.001", 0.287),
    ("bert", 1): ("0.002", 0.540),
    ("bert", 2): ("0.003", 0.368),
    ("bert", 6): ("0.011", 0.830),
    ("bert", 12): ("<0.001", 0.394),
    ("gpt2", 1): ("0.011", 0.940),
    ("gpt2", 2): ("0.017", 1.652),
    ("gpt2", 6): ("<0.001", 0.569),
    ("gpt2", 12): ("<0.001", 0.385),
}
READ = ("eff v", "eff s", "eff lin", "fidel v", "fidel s", "fidel lin")
SINGLE = ("LIME", "SHAP", "IG", "Grad", "LRP", "random")
TABLE_9 = {
    "distilbert": (0.692, 0.373, 0.693, 0.602, 0.020, 0.602, 0.691, 0.619, -0.285, -0.215, 0.706),
    "bert": (0.619, 0.349, 0.626, 0.475, 0.031, 0.474, 0.616, 0.554, -0.125, -0.123, 0.639),
    "gpt2": (0.618, 0.292, 0.619, 0.467, 0.017, 0.468, 0.213, 0.560, 0.033, 0.031, 0.615),
}
TABLE_10 = {
    "distilbert": (0.688, 0.681, 0.686, None, None, None, 0.702, 0.668, None, None, 0.703),
    "bert": (0.786, 0.807, 0.801, None, None, None, 0.805, 0.800, None, None, 0.813),
    "gpt2": (0.674, 0.685, 0.683, None, None, None, 0.632, 0.671, None, None, 0.699),
}
REMOVALS = ("eff v", "eff lin", "fidel v", "fidel lin")
TABLE_11 = {  # metric, data, shape
    ("insertion", "imdb", "bert"): (0.031, 0.031, 0.025, 0.023, 0.024, 0.026, 0.557, 0.611, 0.030),
    ("insertion", "imdb", "distilbert"): (
        *(0.027, 0.027, 0.028, 0.024, 0.027, 0.029, 0.495, 0.508, 0.023),
    ),
    ("insertion", "imdb", "gpt2"): (0.089, 0.089, 0.052, 0.050, 0.230, 0.042, 0.454, 0.493, 0.069),
    ("insertion", "yelp", "bert"): (0.011, 0.011, 0.015, 0.011, 0.017, 0.012, 0.224, 0.214, 0.010),
    ("insertion", "yelp", "distilbert"): (
        *(0.032, 0.032, 0.018, 0.019, 0.014, 0.020, 0.250, 0.249, 0.017),
    ),
    ("insertion", "yelp", "gpt2"): (0.045, 0.045, 0.033, 0.032, 0.129, 0.021, 0.251, 0.244, 0.039),
    ("deletion", "imdb", "bert"): (0.881, 0.885, 0.893, 0.901, 0.875, 0.881, 0.084, 0.069, 0.852),
    ("deletion", "imdb", "distilbert"): (
        *(0.888, 0.886, 0.841, 0.854, 0.838, 0.864, 0.143, 0.131, 0.865),
    ),
    ("deletion", "imdb", "gpt2"): (0.782, 0.784, 0.837, 0.844, 0.479, 0.859, 0.289, 0.269, 0.833),
    ("deletion", "yelp", "bert"): (0.865, 0.863, 0.657, 0.667, 0.797, 0.859, 0.249, 0.281, 0.855),
    ("deletion", "yelp", "distilbert"): (
        *(0.813, 0.813, 0.645, 0.642, 0.746, 0.854, 0.201, 0.243, 0.768),
    ),
    ("deletion", "yelp", "gpt2"): (0.726, 0.727, 0.747, 0.753, 0.444, 0.849, 0.292, 0.290, 0.740),
}
ACCURACY = {
    ("imdb", "distilbert"): 0.88,
    ("imdb", "bert"): 0.90,
    ("imdb", "gpt2"): 0.74,
    ("yelp", "distilbert"): 0.86,
    ("yelp", "bert"): 0.88,
    ("yelp", "gpt2"): 0.88,
}
SECONDS = {  # Tables 2 and 13, an A100
    ("SHAP", 1000): 2.35,
    ("LIME", 1000): 0.80,
    ("fidel", 1000): 0.74,
    ("eff", 1000): 0.42,
    ("SHAP", 2000): 4.62,
    ("LIME", 2000): 1.58,
    ("fidel", 2000): 1.42,
    ("eff", 2000): 0.80,
    ("LRP", 0): 0.02,
    ("IG", 0): 0.02,
    ("Grad", 0): 0.01,
}
TABLE_14 = {"SHAP 0": 0.9135, "eff 500": 0.9243, "eff 1000": 0.9236, "eff 2000": 0.9348}

_HEAD = """# SLALOM's experiments

What Leemann et al., *Attention Mechanisms Don't Learn Additive Models* (TMLR 2024), measure, on
models that were trained from scratch for this page. A cell has the paper's number, a bar, and ours
with the standard error over runs or texts; "-" is what was not measured or not published. Their
weights, subsets and seeds are not published: the outcome is compared, not the digits. Written by
`python benchmarks/slalom_tables.py table`.
"""


def page(stored: dict[str, Any]) -> str:
    """All tables as one page."""
    cells = {name: one for name, one in stored["cells"].items() if "error" not in one}
    sections = (_repetition, _lengths, _counterexample, _surrogates, _recovery, _models)
    parts = [_HEAD, _settings(stored), *(section(cells) for section in sections)]
    parts += [_correlation(cells), _attention(cells), _removals(cells), _fidelity(cells)]
    return "\n".join([*parts, _samples(cells), _runtime(cells)])


def _settings(stored: dict[str, Any]) -> str:
    where = ", ".join(f"{name} {value}" for name, value in stored["provenance"].items())
    sizes = ", ".join(f"{name} {value}" for name, value in stored["settings"].items())
    return (
        f"Run: {where}. Size `{stored['size']}`: {sizes}.\n\n"
        "The paper: 5 runs of each model; 20 epochs of 20,000 SLALOM sequences in batches of 20 at "
        "a width of 768; 5000 reviews of each data set for 5 epochs in batches of 5; 5000 samples "
        "an explanation and 100 texts. Our models for Yelp learnt reviews of films and those of "
        "Yelp-HAT that are not tested here. Texts are in lower case and byte pairs.\n"
    )


# ---- known truths --------------------------------------------------------------------------------


def _repetition(cells: Cells) -> str:
    columns = ("model", "slope", "flatness", "cross-entropy", "of the truth")
    rows = []
    for label, some in _runs(cells, "linear", "control"):
        curve = [one["repetition"] for one in some]
        shape = (_mean(curve, name, "{:.2f}") for name in ("slope", "flatness"))
        loss = (_mean(some, name, "{:.3f}") for name in ("loss", "least_loss"))
        rows.append((label, *shape, *loss))
    text = (
        'The log-odds of "perfect" said 1 to 20 times. The truth is a sum: a slope of 1.5, and '
        "28.5 between the first and the last. The paper shows curves: fully connected models "
        "follow the sum, Transformers are almost constant. Shuffled labels and an exact sum are "
        "controls."
    )
    return _section("Repetition (Figure 3)", text, columns, rows)


def _lengths(cells: Cells) -> str:
    rows = []
    for label, some in _runs(cells, "linear", "control"):
        row = [one["lengths"] for one in some]
        rows.append((label, *(_mean(row, f"shapley_{i}", "{:.2f}") for i in range(1, 9))))
    text = 'The Shapley value of each "perfect" in a text of 1 to 8 of them; 1.5 is the truth.'
    return _section("Lengths (Figure 7)", text, ("model", *map(str, range(1, 9))), rows)


def _counterexample(cells: Cells) -> str:
    asked = ("high", "high_high", "low", "low_low", "high_low", "gam_expects", "slalom_expects")
    rows = [
        (label, *(_mean([one["counterexample"] for one in some], name, "{:.2f}") for name in asked))
        for label, some in _runs(cells, "linear", "control")
    ]
    text = (
        'Log-odds of "perfect" and "worst", alone, twice and together, and what a GAM and a SLALOM '
        "that fit the others expect of both together. The paper's BERT of 4 layers: 2.5, 2.5, "
        "-2.6, -2.5, 0.0; a GAM expects 2.6, a SLALOM -0.05."
    )
    columns = ("model", "P", "P P", "W", "W W", "P W", "GAM expects", "SLALOM expects")
    return _section("A counterexample (Figure 9)", text, columns, rows)


def _surrogates(cells: Cells) -> str:
    rows, ordered, total = [], 0, 0
    for label, some in _runs(cells, "linear", "control"):
        paper = TABLE_6.get(_key(label), (None,) * 3)
        found = [one["surrogates"] for one in some]
        names = ("linear_mse", "gam_mse", "slalom_mse")
        ours = [_mean(found, name, "{:.2f}", 100) for name in names]
        rows.append((label, *map(_beside, paper, ours), _mean(found, "variance", "{:.1f}", 100)))
        if _key(label) in TABLE_6:
            linear, gam, slalom = (fmean(one[name] for one in found) for name in names)
            total += 1
            ordered += slalom < linear < gam
    text = (
        "Mean squared errors x 100 of surrogates of the model's log-odds on fresh linear data, "
        "beside the variance of the log-odds. The paper has SLALOM < linear < GAM in every row; "
        f"here it is so in {ordered} of {total} rows of Transformers."
    )
    columns = ("model", "linear", "GAM", "SLALOM", "variance")
    return _section("Which surrogate fits (Table 6)", text, columns, rows)


def _recovery(cells: Cells) -> str:
    rows = []
    whole = max((int(name.split("/")[3]) for name in cells if name[:7] == "slalom/"), default=0)
    for label, some in _runs(cells, "slalom"):
        shape, layers = _key(label)
        words = label.split(", ")[-1]
        paper = TABLES_7_8.get((shape, layers), (None, None)) if words == f"{whole} words" else ()
        logits, parameters = paper or (None, None)
        rows.append(
            (
                label,
                _beside(logits, _mean(some, "logit_mse", "{:.3f}", 100)),
                _beside(parameters, _mean(some, "parameter_mse", "{:.2f}", 100)),
                _mean(some, "logit_rmse", "{:.4f}"),
                _mean(some, "logit_bias", "{:.4f}"),
            )
        )
    text = (
        "Models that learnt SLALOM data, a SLALOM fitted to their log-odds, and its distance from "
        "the truth: mean squared errors x 100 of logits (Table 7) and of values and centred "
        "importances (Table 8). The authors' notebook prints the bias, the absolute mean error, "
        "under the name of the root mean squared error (0.003 in Figure 4c), and Tables 7 and 8 "
        "may be of that kind; both are given here. The last row is what fitting alone leaves."
    )
    columns = ("model", "logits", "parameters", "RMSE of logits", "bias of logits")
    return _section("Recovery (Figure 4c, d, Tables 7, 8)", text, columns, rows)


# ---- reviews -------------------------------------------------------------------------------------


def _models(cells: Cells) -> str:
    rows = []
    for (data, shape), paper in ACCURACY.items():
        found = cells.get(f"models/{data}/{shape}")
        ours = None if found is None else f"{found['accuracy']:.3f} of {found['tested']}"
        rows.append((data, SHAPES[shape], _beside(paper, ours)))
    text = "Accuracies on texts that were not learnt."
    return _section("Models of reviews (Table 4)", text, ("data", "model", "accuracy"), rows)


def _correlation(cells: Cells) -> str:
    rows = [
        (SHAPES[shape], *_compared(cells, f"texts/imdb/{shape}", "naive_bayes", READ, paper))
        for shape, paper in TABLE_9.items()
    ]
    text = "Mean rank correlation with naive-Bayes weights of tokens; higher is better."
    return _section("Naive Bayes (Tables 1a, 9)", text, ("model", *READ, *SINGLE), rows)


def _attention(cells: Cells) -> str:
    rows = [
        (SHAPES[shape], *_compared(cells, f"texts/yelp/{shape}", "attention", READ, paper))
        for shape, paper in TABLE_10.items()
    ]
    text = "AU-ROC of what people marked, all of them agreeing; higher is better, chance is 0.5."
    return _section("Human attention (Tables 1b, 10)", text, ("model", *READ, *SINGLE), rows)


def _removals(cells: Cells) -> str:
    rows = [
        (
            f"{metric}, {data}",
            SHAPES[shape],
            *_compared(cells, f"texts/{data}/{shape}", metric, REMOVALS, paper),
        )
        for (metric, data, shape), paper in TABLE_11.items()
    ]
    text = (
        "1 less the mean probability of the label with only the 5, 10, ... highest-scored "
        "(insertion, lower is better) or lowest-scored tokens left (deletion, higher is better)."
    )
    columns = ("", "model", *REMOVALS, *SINGLE)
    return _section("Insertion and deletion (Tables 1c, 11)", text, columns, rows)


def _fidelity(cells: Cells) -> str:
    methods, rows = ("eff", "fidel", *SINGLE), []
    for shape, name in SHAPES.items():
        for removed in (1, 5, 10):
            own = [cells.get(f"texts/imdb/{shape}/{method}", {}) for method in methods]
            errors = [one.get("fidelity", {}).get(f"curve_{removed}") for one in own]
            rows.append((name, str(removed), *("-" if e is None else f"{e:.3f}" for e in errors)))
    text = (
        "Mean squared error of the predicted change of log-odds when so many random tokens go; "
        "lower is better. The paper shows curves; at ten removals its SLALOM-fidel is 45 % (BERT), "
        f"41 % (DistilBERT) and 70 % (GPT-2) below LRP; here {_gaps(cells)}."
    )
    return _section("Fidelity (Figure 6)", text, ("model", "removed", *methods), rows)


def _samples(cells: Cells) -> str:
    rows = []
    for name, one in cells.items():
        if name.startswith("samples/"):
            which = " ".join(name.split("/")[3:])
            ours = _with_error(one["deletion"], "{:.3f}")
            rows.append((which, _beside(TABLE_14.get(which), ours)))
    text = "Deletion on the IMDB BERT by the number of samples; 0 is Kernel SHAP's own choice."
    return _section("Samples (Table 14)", text, ("method", "deletion"), rows)


def _runtime(cells: Cells) -> str:
    rows = []
    for name, one in cells.items():
        if name.startswith("runtime/"):
            method, many = name.split("/")[3:]
            ours = f"{one['seconds']:.3f} ± {one['seconds_se']:.3f}"
            passes = f"{one['forwards']:.0f} / {one['backwards']:.0f}"
            paper = SECONDS.get((method, int(many)))
            rows.append((method, many, _beside(paper, ours), passes, f"{one['tokens']:.0f}"))
    text = (
        "Seconds of one explanation of the IMDB DistilBERT, one text at a time. Other hardware and "
        "another model than the paper's, so only ratios compare: there SHAP / eff is about 5, "
        "LIME / eff about 2. Our SLALOM's time has ten refits in it, for its standard errors, "
        f"and equal samples are asked for once. Here {_ratios(cells)}."
    )
    columns = ("method", "samples", "seconds", "forwards / backwards", "tokens")
    return _section("What it costs (Tables 2, 13)", text, columns, rows)


def _gaps(cells: Cells) -> str:
    """How far fidel is from LRP at ten removals, in words."""
    found = []
    for shape, name in SHAPES.items():
        own = [cells.get(f"texts/imdb/{shape}/{method}", {}) for method in ("fidel", "LRP")]
        ours, other = (one.get("fidelity", {}).get("curve_10") for one in own)
        if ours is not None and other:
            way = "below" if ours < other else "above"
            found.append(f"{abs(1 - ours / other):.0%} {way} ({name})")
    return ", ".join(found) or "it was not measured"


def _ratios(cells: Cells) -> str:
    """What SHAP and LIME cost beside eff, in words."""
    found = []
    for name, one in cells.items():
        place, _, rest = name.partition("/eff/")
        if place.startswith("runtime/") and rest:
            for other in ("SHAP", "LIME"):
                beside = cells.get(f"{place}/{other}/{rest}")
                if beside is not None:
                    ratio = beside["seconds"] / one["seconds"]
                    found.append(f"{other} / eff is {ratio:.2g} at {rest} samples")
    return ", ".join(found) or "it was not measured"


# ---- cells of tables -----------------------------------------------------------------------------


def _runs(cells: Cells, *kinds: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Runs that differ in their seed alone, under one name, in the order of the paper's tables."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for name, one in cells.items():
        kind, *rest = name.split("/")
        if kind in kinds:
            found.setdefault(_label(kind, rest), []).append(one)
    return [(label, found[order, label]) for order, label in sorted(found)]


def _label(kind: str, rest: Sequence[str]) -> tuple[int, str]:
    """Where a row stands, and its name."""
    if kind == "control":
        return 10**6, "exact sum" if rest[0] == "sum" else f"{SHAPES[rest[1]]}, shuffled labels"
    if rest[0] == "exact":
        return 10**6, f"the truth itself, {rest[2]} words"
    if rest[0] == "fc":
        return int(rest[1]), f"fully connected, {rest[1]} wide"
    order = 10**4 * (1 + list(SHAPES).index(rest[0])) + 100 * int(rest[1])
    label = f"{SHAPES[rest[0]]}, L{rest[1]}"
    return (
        (order, label) if kind == "linear" else (order + int(rest[2]), f"{label}, {rest[2]} words")
    )


def _key(label: str) -> tuple[str, int]:
    """The shape and the number of layers of a row."""
    name, _, rest = label.partition(", L")
    shape = next((short for short, long in SHAPES.items() if long == name), "")
    return shape, int(rest.partition(",")[0]) if rest else 0


def _compared(
    cells: Cells, place: str, metric: str, readings: Sequence[str], paper: Sequence[float | None]
) -> list[str]:
    """One row of methods: the paper's numbers and ours."""
    columns = [*readings, *SINGLE]
    published = [*paper, *[None] * (len(columns) - len(paper))]
    found = []
    for column, number in zip(columns, published, strict=True):
        method, _, reading = column.partition(" ")
        row = cells.get(f"{place}/{method}", {}).get(f"{metric} {reading}".strip())
        ours = None if row is None or "mean" not in row else _with_error(row, "{:.3f}")
        found.append(_beside(number, ours))
    return found


def _mean(rows: Sequence[dict[str, Any]], name: str, form: str, scale: float = 1.0) -> str:
    """The mean over runs, with its standard error where there are several."""
    values = [scale * row[name] for row in rows]
    error = pstdev(values) / len(values) ** 0.5
    return form.format(fmean(values)) + (f" ± {form.format(error)}" if len(values) > 1 else "")


def _with_error(row: dict[str, float], form: str) -> str:
    return f"{form.format(row['mean'])} ± {form.format(row['se'])}"


def _beside(paper: float | str | None, ours: str | None) -> str:
    return f"{'-' if paper is None else paper} \\| {ours or '-'}"


def _section(title: str, text: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([f"## {title}\n", text, "", *head, *lines, ""])
