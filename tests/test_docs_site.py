"""The site: every block runs and prints what it says, made pages are whole, nothing is fetched."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pellucid
from pellucid.methods import METHODS
from pellucid.metrics import METRICS
from pellucid.metrics.walks import WALK_METRICS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "made"))
try:
    import blocks
    import choosing_page
    import methods_pages
    import metrics_pages
    import prose
    import reference_page
    import stored
    import tried
finally:
    sys.path.pop(0)

MKDOCS = shutil.which("mkdocs") or shutil.which("mkdocs", path=Path(sys.executable).parent)
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
RUN_ELSEWHERE = {"walks.md", "chat.md"}  # by test_docs.py and test_chat.py, with their results
SHOWING = [name for name in PAGES if blocks.blocks_of(DOCS / name) and name not in RUN_ELSEWHERE]
NOT_RUN = {  # what is shown and not run, and why
    "coming-from.md": [
        "needs captum",
        "needs shap",
        "needs quantus",
        "needs lxt, which changes the model's classes for the whole process",
        "needs grad-cam",
    ],
}
PICTURES = {  # of a page, which writes them
    "concepts.md": {"classes.png", "repetition.png"},
    "tutorials/wrong-prediction.md": {"wrong-prediction.png"},
    "tutorials/blind-spots.md": {"blind-spots.png"},
    "tutorials/planted-artefact.md": {"planted-artefact.png"},
}


# ---- what is shown runs --------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHOWING)
def test_a_page_does_what_it_shows(name, tmp_path):
    page = DOCS / name
    shown = [block for block in blocks.blocks_of(page) if block.language in ("python", "console")]
    done = blocks.run_page(page, tmp_path)
    assert done == sum(not block.reason for block in shown)
    pictures = {path.name for path in tmp_path.glob("*.png")}
    assert pictures == PICTURES.get(name, set())
    for picture in pictures:
        assert (DOCS / "images" / picture).is_file(), "type: python docs/made/pictures.py"


def test_what_is_not_run_says_why():
    reasons = {
        name: [block.reason for block in blocks.blocks_of(DOCS / name) if block.reason]
        for name in PAGES
    }
    assert {name: found for name, found in reasons.items() if found} == NOT_RUN


def test_every_fence_is_read():
    """A block that the pattern misses would be shown and never run."""
    for name in PAGES:
        fences = re.findall(r"^ *```", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks.blocks_of(DOCS / name)), name


def test_commands_that_are_shown_exist():
    """Those of pellucid run; of make, the target is there; there are no others."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in PAGES:
        for block in blocks.blocks_of(DOCS / name):
            for command in block.commands if block.language == "console" else []:
                if command.startswith("make "):
                    assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE), command
                else:
                    assert command.startswith("pellucid "), command


@pytest.mark.parametrize(
    ("printed", "shown", "expected"),
    [
        ("0.82 dull\n", "0.82  dull", True),
        ("0.83 dull\n", "0.82 dull\n", True),  # one in the last digit
        ("0.84 dull\n", "0.82 dull\n", False),
        ("1.2e-05\n", "1.3e-05\n", True),
        ("9 seen\n", "10 seen\n", False),  # whole numbers are exact
        ("bright\n", "dull\n", False),
        ("0.8\n", "0.8 0.8\n", False),
    ],
)
def test_outputs_are_compared_to_the_last_digit_shown(printed, shown, expected):
    assert blocks.same(printed, shown) is expected


def test_a_block_whose_output_is_wrong_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md, line 2: it prints\n2"):
        blocks.run_page(page, tmp_path)
    page.write_text('```python title="Not run: no"\n1 / 0\n```\n\n```python\nx = 1\n```\n', "utf-8")
    assert blocks.run_page(page, tmp_path) == 1


# ---- links ---------------------------------------------------------------------------------------


def test_links_lead_to_pages_that_are_there_or_made():
    made = {"reference.md", "contributing.md", "changelog.md", "methods/index.md"}
    made |= {"metrics/index.md", "metrics/walks.md"} | {f"methods/{name}.md" for name in METHODS}
    made |= {f"metrics/{name}.md" for name in METRICS}
    for name in PAGES:
        text = (DOCS / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
            path = (DOCS / name).parent.joinpath(target).resolve()
            inside = path.relative_to(DOCS.resolve()).as_posix()
            assert path.exists() or inside in made, f"{name}: {target}"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    own = {name for name in PAGES if not name.startswith("results/")}  # which are found
    assert own <= listed


# ---- pages that are made -------------------------------------------------------------------------


@pytest.mark.parametrize("table", [METHODS, METRICS, WALK_METRICS], ids=lambda table: len(table))
def test_every_member_says_when_it_misleads(table):
    for name, spec in table.items():
        _, _, misleads = prose.module_of(spec.function)
        assert misleads.count(prose.MISLEADS) == 1, f"{name}: its module says 'It misleads where'"
        assert misleads.endswith("."), name


def test_the_page_of_a_method_has_what_its_declaration_says():
    spec = METHODS["gradient"]
    image, text = tried.shown(spec)
    assert (image.forwards, image.backwards) == (text.forwards, text.backwards) == (1, 1)
    assert image.picture.startswith(b"\x89PNG")
    assert image.colours is None
    assert text.picture is None
    assert re.search(r'<span style="[^"]*background-color: #\w+[^"]*">enjoyed</span>', text.colours)
    page = methods_pages.page(spec, [image, text])
    for part in (
        "# gradient\n",
        "![gradient on a handwritten 8](gradient.png)",
        "Simonyan",
        "gradients with respect to the input",
        "gradient(reduce='max')",
        "It misleads where the model is saturated",
        "| `pellucid/digits-vit` | 1 | 1 |",
        "    def gradient(",
        "unsigned and those of one class",
    ):
        assert part in page, part


def test_every_method_and_metric_has_a_page_with_all_its_parts():
    made = methods_pages.pages(lambda spec: []) | metrics_pages.pages(lambda spec: [])
    for folder, table in (("methods", METHODS), ("metrics", METRICS)):
        for name in table:
            page = made[f"{folder}/{name}.md"]
            parts = page.split("\n## ")
            titles = [part.partition("\n")[0] for part in parts[1:]]
            for title in ("What it is", "When it misleads", "Source"):
                assert titles.count(title) == 1, (name, title)
            assert all(part.partition("\n")[2].strip() for part in parts[1:]), name
            assert f"    def {name}(" in page
            assert '"""' not in page.partition("## Parameters")[0], name


def test_the_list_of_methods_has_a_row_for_each():
    none = {name: [] for name in METHODS}
    index = methods_pages.index(none)
    assert re.findall(r"^\| \[`(\w+)`\]", index, re.MULTILINE) == list(METHODS)


def test_the_page_of_a_metric_has_values_that_measure_gives():
    spec = METRICS["pointing_game"]
    (found,) = tried.valued(spec)
    model = pellucid.load("pellucid/digits-vit")
    ex = pellucid.explain(model, tried.digit(), method="attn_lrp")
    ink = ex.item.view[..., 0] > 127
    again = pellucid.measure(model, ex, metric="pointing_game", truth=ink)
    assert found.values["attn_lrp"] == again.value
    page = metrics_pages.page(spec, [found])
    assert "**Higher is better.**" in page
    assert "the mask of the object (`truth=`)" in page


def test_every_metric_is_listed_under_its_family():
    index, walks = metrics_pages.index(), metrics_pages.walks()
    assert sorted(re.findall(r"^\| \[`(\w+)`\]", index, re.MULTILINE)) == sorted(METRICS)
    assert re.findall(r"^## (\w+)", walks, re.MULTILINE) == list(WALK_METRICS)


def test_the_reference_has_every_public_name():
    named = re.findall(r"^### ([\w.]+)", reference_page.page(), re.MULTILINE)
    inner = [
        f"{m}.{name}" for m in ("data", "bench") for name in import_module(f"pellucid.{m}").__all__
    ]
    assert sorted(named) == sorted({*pellucid.__all__, *inner} - {"__version__"})
    assert (
        "explain(\n    model: Any,\n    inputs: Any,\n    *,\n    method:" in reference_page.page()
    )


def test_docstrings_are_no_markup():
    assert prose.prose("|a_b| * <c> `x*y` ``z|``") == r"\|a\_b\| \* &lt;c> `x*y` ``z|``"
    assert prose.prose("softmax-\nweighted\nmean") == "softmax-weighted\nmean"


# ---- choosing ------------------------------------------------------------------------------------

STORED = """
{"about": "two digits", "provenance": {"device": "cpu"}, "methods": {
 "random": {"all": {"passes": {"mean": 1, "se": 0, "n": 9},
                    "insertion_minus_deletion": {"mean": 0.1, "se": 0.03, "n": 9},
                    "sparseness": {"mean": 0.2, "se": 0.01, "n": 9}}},
 "rollout": {"all": {"passes": {"mean": 1, "se": 0, "n": 9},
                     "insertion_minus_deletion": {"mean": 0.12, "se": 0.04, "n": 9},
                     "sparseness": {"mean": 0.5, "se": 0.01, "n": 9}}},
 "attn_lrp": {"all": {"passes": {"mean": 2, "se": 0, "n": 9},
                      "insertion_minus_deletion": {"mean": 0.50, "se": 0.04, "n": 9},
                      "sparseness": {"mean": 0.4, "se": 0.01, "n": 9}}},
 "cp_lrp": {"all": {"passes": {"mean": 2, "se": 0, "n": 9},
                    "insertion_minus_deletion": {"mean": 0.41, "se": 0.03, "n": 9},
                    "sparseness": {"mean": 0.4, "se": 0.01, "n": 9}}},
 "tis": {"all": {"passes": {"mean": 1024, "se": 0, "n": 9},
                 "insertion_minus_deletion": {"mean": 0.9, "se": 0.01, "n": 9}}}}}
"""


def test_choosing_names_the_best_and_what_is_not_told_from_it(tmp_path):
    (tmp_path / "digits.json").write_text(STORED, encoding="utf-8")
    (run,) = stored.stored_runs(tmp_path)
    rows = choosing_page.budget([run]).splitlines()[2:]
    named = [re.findall(r"`(\w+)`", row) for row in rows]
    # 0.50 and 0.41 are 0.09 / hypot(0.04, 0.03) = 1.8 errors apart, so neither is named alone
    assert named == [["rollout"], *[["attn_lrp", "cp_lrp"]] * 3, ["tis"]]


def test_choosing_marks_what_is_no_better_than_chance(tmp_path):
    (tmp_path / "digits.json").write_text(STORED, encoding="utf-8")
    table = choosing_page.table(stored.stored_runs(tmp_path)[0])
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\S+ (.*)$", table, re.MULTILINE))
    assert list(rows) == ["tis", "attn_lrp", "cp_lrp", "rollout", "random"]
    assert "0.120&nbsp;±&nbsp;0.040&nbsp;†" in rows["rollout"]
    assert [name for name in rows if "†" in rows[name]] == ["rollout"]
    assert (
        "**0.500&nbsp;±&nbsp;0.010**" in rows["rollout"]
    )  # the sparsest, and not judged by chance


def test_choosing_does_without_stored_runs(tmp_path):
    made = choosing_page.tables(tmp_path)
    assert made["runs"] == ""
    assert made["budget"] == "No run is stored yet."


def test_the_page_on_choosing_has_a_place_for_every_table():
    text = (DOCS / "choosing.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- made: (\w+) -->", text)) == sorted(choosing_page.tables())


def test_every_method_is_somewhere_in_what_runs_on_what_one_has():
    assert set(re.findall(r"methods/(\w+)\.md", choosing_page.have())) == set(METHODS)


# ---- the built site ------------------------------------------------------------------------------


@pytest.mark.skipif(MKDOCS is None, reason="needs pellucid[docs]")
def test_the_site_is_built_strictly_and_fetches_nothing(tmp_path):
    command = [MKDOCS, "build", "--strict", "--site-dir", str(tmp_path / "site")]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    for path in (tmp_path / "site").rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="?(?:https?:)?//\S+', page)
        fetched += re.findall(r'<link\b[^>]*\bhref="?(?:https?:)?//\S+', page)
        assert fetched == [], path.name
        assert 'class="mermaid"' not in page  # the one thing that the theme would fetch
        assert "```" not in page, path.name  # a fence that was not understood
        assert "made: " not in page
    for path in (tmp_path / "site").rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", text), path.name
