"""The page of a run: tables, curves, the first samples by every method, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from PIL import Image

from pellucid._references import REFERENCES
from pellucid.bench.formats import LEGEND, caveats
from pellucid.bench.published import Published, printed, published_in
from pellucid.bench.seen import GRID, Heat, Seen, seen_in
from pellucid.bench.store import Store
from pellucid.bench.table import Cell, Group, StudyTable, table_of
from pellucid.bench.wording import count, duration
from pellucid.viz import write_page
from pellucid.viz.chart import chart
from pellucid.viz.colour import AGAINST, AMOUNT, FOR, Scale
from pellucid.viz.curves import Curve
from pellucid.viz.image import png_uri
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.text import heat_span
from pellucid.viz.wording import number

_STRONGEST = 0.8  # opacity of the strongest heat on a picture
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"


def write_report(folder: str | Path) -> Path:
    """Write the page of a run into its folder."""
    folder = Path(folder)
    table = table_of(folder)
    with Store.reading(folder) as store:
        html = page(table, seen_in(store))
    return write_page(html, folder / "report.html", overwrite=True)


def page(table: StudyTable, seen: Seen | None = None) -> str:
    """A whole page, which loads nothing and runs nothing."""
    name = str(table.about.get("name", "study"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{name}: a study"),
        element("style", Markup(_style())),
    )
    parts = [_part(table, part, groups, seen) for part, groups in table.parts().items()]
    others = [_published(one) for one in published_in(table.about)]
    main = element("main", _caveats(table), *parts, *others, _provenance(table))
    header = element("header", element("div", element("h1", name), element("p", _summary(table))))
    colours = {"for": FOR, "against": AGAINST, "amount": AMOUNT}
    style = ";".join(f"--{key}:{' '.join(map(str, rgb))}" for key, rgb in colours.items())
    body = element("body", header, main, class_="pellucid study", style=style)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _summary(table: StudyTable) -> str:
    states = table.states
    total = sum(states.values())
    worked = duration(sum(table.seconds.values()))
    versions = table.about.get("versions", {})
    return (
        f"{states['done']:,} of {count(total, 'unit')} done · {worked} of work · "
        f"pellucid {versions.get('pellucid', '')}"
    )


def _caveats(table: StudyTable) -> Markup:
    found = caveats(table)
    return (
        element("ul", *(element("li", one) for one in found), class_="caveats")
        if found
        else Markup()
    )


def _part(table: StudyTable, part: Group, groups: list[Group], seen: Seen | None) -> Markup:
    """One model on one data set."""
    return element(
        "section",
        element("h2", " · ".join(part)),
        _table(table, groups),
        Markup() if seen is None else _curves(table, groups, seen),
        Markup() if seen is None else _sheet(groups, seen),
        class_="input",
    )


# ---- numbers -------------------------------------------------------------------------------------


def _table(table: StudyTable, groups: list[Group]) -> Markup:
    measures = table.measures(groups)
    better = {cell.measure: cell.better for cell in table.cells if cell.group in groups}
    head = element(
        "tr",
        element("th", table.columns[-1], scope="col"),
        *(element("th", one, _direction(better[one]), scope="col") for one in measures),
        element("th", "work", scope="col"),
    )
    rows = [
        element(
            "tr",
            element("th", group[-1], scope="row"),
            *(_cell(table.by_place.get((group, one))) for one in measures),
            element("td", duration(table.seconds.get(group, 0.0)), class_="muted"),
        )
        for group in groups
    ]
    words = element("p", LEGEND, class_="muted")
    grid = element("table", element("thead", head), element("tbody", *rows), class_="results")
    return join(element("div", grid, class_="scroll"), words)


def _direction(better: str | None) -> Markup:
    return Markup() if better is None else element("small", f"{better} is better")


def _published(one: Published) -> Markup:
    """A table of a paper, under the headings of ours."""
    head = element("tr", *(element("th", name, scope="col") for name in ("", *one.measures)))
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            *(element("td", printed(number)) for number in numbers),
        )
        for name, numbers in one.rows.items()
    ]
    grid = element("table", element("thead", head), element("tbody", *rows), class_="results")
    words = element("p", REFERENCES[one.cite], class_="muted")
    scroll = element("div", grid, class_="scroll")
    return element("section", element("h2", one.title), scroll, words, class_="input")


def _cell(cell: Cell | None) -> Markup:
    if cell is None or cell.value is None:
        why = "" if cell is None else "; ".join(cell.skipped)
        return element("td", "–", title=why or None)
    value = number(cell.value) if cell.interval is None else f"{cell.value:.3f}"
    shown = element("b", value) if cell.best else join(value)
    range_ = "" if cell.interval is None else f"{cell.interval[0]:.3f} to {cell.interval[1]:.3f}"
    skipped = sum(cell.skipped.values())
    known = count(cell.samples, "sample") + (f", {skipped} skipped" if skipped else "")
    return element("td", shown, element("small", range_), title=known)


def _curves(table: StudyTable, groups: list[Group], seen: Seen) -> Markup:
    """A chart for each measure that has curves: its mean over samples, a line a method."""
    charts = []
    for measure in table.measures(groups):
        lines = [
            Curve(group[-1], 100 * GRID, seen.curves[group, measure])
            for group in groups
            if (group, measure) in seen.curves
        ]
        if lines:
            legend = "Mean over samples, by the percentage of steps done."
            charts.append(chart(measure, lines, steps=100, legend=legend))
    return element("div", *charts, class_="charts") if charts else Markup()


# ---- samples -------------------------------------------------------------------------------------


def _sheet(groups: list[Group], seen: Seen) -> Markup:
    """The first samples, a row each, with a column for every method."""
    shown = [group for group in groups if seen.heats.get(group)]
    numbers = sorted({number for group in shown for number in seen.heats[group]})
    if not numbers:
        return Markup()
    head = element("tr", *(element("th", name, scope="col") for name in _heads(shown)))
    rows = [
        element(
            "tr",
            element("th", seen.names.get((shown[0][:-1], one), ""), scope="row"),
            *(element("td", _heat(seen.heats[group].get(one))) for group in shown),
        )
        for one in numbers
    ]
    sheet = element("table", element("thead", head), element("tbody", *rows), class_="sheet")
    title = element("h3", f"The first {count(len(numbers), 'sample')}")
    return join(title, element("div", sheet, class_="scroll"))


def _heads(shown: list[Group]) -> list[str]:
    return ["sample (class read)", *(group[-1] for group in shown)]


def _heat(heat: Heat | None) -> Markup:
    if heat is None:
        return Markup()
    if heat.view is None or heat.heat is None:
        scale = Scale.of([score for _, score in heat.words], heat.signed)
        return join(*_words(heat.words, scale))
    picture = _painted(heat.view, heat.heat, Scale.of(heat.heat, heat.signed, 0.99))
    height, width = heat.view.shape[:2]
    crisp = "crisp" if max(height, width) <= 128 else None
    return element("img", src=png_uri(picture), alt="", class_=crisp)


def _words(words: Sequence[tuple[str, float]], scale: Scale) -> list[Markup]:
    strengths = scale.strength([score for _, score in words]).tolist()
    pieces: list[Markup] = []
    for (text, score), strength in zip(words, strengths, strict=True):
        pieces += [heat_span(text, strength, scale, number(score)), join(" ")]
    return pieces


def _painted(view: np.ndarray, heat: np.ndarray, scale: Scale) -> Image.Image:
    """The picture with its heat on it."""
    grey = view[..., 0] if view.shape[2] == 1 else view
    picture = Image.fromarray(np.ascontiguousarray(grey)).convert("RGBA")
    layer = Image.fromarray(scale.rgba(heat)).resize(picture.size, Image.Resampling.NEAREST)
    layer.putalpha(layer.getchannel("A").point(lambda alpha: round(_STRONGEST * alpha)))
    return Image.alpha_composite(picture, layer).convert("RGB")


# ---- where it comes from -------------------------------------------------------------------------


def _provenance(table: StudyTable) -> Markup:
    """Weights, data, versions, the meaning of every measure, and the plan as it was written."""
    about = table.about
    rows: list[tuple[str, str]] = []
    for name, model in about.get("models", {}).items():
        rows.append((f"model {name}", f"{model['load']}, {model['dtype']}, {model['weights']}"))
    for name, data in about.get("data", {}).items():
        what = count(data["samples"], "sample")
        rows.append((f"data {name}", f"{data['read']}, {what}, {data['fingerprint']}"))
    for kind in ("methods", "measures"):
        for name, one in about.get(kind, {}).items():
            if "summary" in one:
                params = ", ".join(f"{key}={value!r}" for key, value in one["params"].items())
                rows.append((name, f"{one['summary']} {params}".strip()))
    rows.append(("versions", ", ".join(f"{k} {v}" for k, v in about.get("versions", {}).items())))
    rows.append(("settings", json.dumps(about.get("settings", {}))))
    listed = [join(element("dt", name), element("dd", text)) for name, text in rows]
    plan = element("pre", str(about.get("plan", "")))
    return element("details", element("summary", "Provenance"), element("dl", *listed), plan)


@cache
def _style() -> str:
    own = files("pellucid.bench").joinpath("report.css").read_text(encoding="utf-8")
    return files("pellucid.viz").joinpath("page.css").read_text(encoding="utf-8") + own
