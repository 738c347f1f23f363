"""Plans: what is wrong is said at once, and a key changes exactly when a number could."""

import os
import tomllib

import pytest
import torch

import pellucid
from pellucid import ArgumentError, data
from pellucid.bench import engines, read_plan, run, samples, table_of
from pellucid.bench.check import checked
from pellucid.bench.plan import as_plan, plan_names, plan_summary
from pellucid.bench.probe import estimates
from pellucid.bench.store import Store
from pellucid.models import sample_images

PLAN = """
[study]
chunk = 3
[[models]]
load = "pellucid/digits-vit"
[[data]]
read = "bundled"
kind = "images"
[[methods]]
method = "rollout"
[[methods]]
method = "random"
[[metrics]]
metric = "deletion"
steps = 4
[[metrics]]
metric = "sparseness"
"""


def planned(text=PLAN, **changes):
    """The plan, with pieces of its text replaced."""
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    return as_plan(tomllib.loads(text), "test", text)


def keys(plan):
    return [unit.key for unit in checked(plan).units()]


@pytest.fixture(scope="module")
def study():
    return checked(planned())


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in plan_names() if name.startswith("smoke-")])
def test_the_small_plans_that_come_with_the_package_can_be_run(name):
    assert plan_summary(name).endswith(".")
    assert list(checked(read_plan(name)).units())


def test_all_that_is_wrong_is_said_at_once():
    wrong = """
        [study]
        sed = 1
        chunk = 0
        target = true
        [[models]]
        load = "pellucid/digits-vit"
        [[data]]
        kind = "images"
        models = ["nobody"]
        [[methods]]
        method = "rollout"
        [[methods]]
        method = "rollout"
        [metric]
    """
    with pytest.raises(ArgumentError) as error:
        planned(wrong)
    message = str(error.value)
    assert "7 problems" in message
    for piece in (
        "seed = ...",
        "chunk=0",
        "'predicted', 'label' or a class",
        'read = "..."',
        "2 entries have one name",
        "[[metrics]]",
        "'[metric]'",
    ):
        assert piece in message


def test_all_that_does_not_fit_is_said_at_once():
    plan = planned(
        target=("chunk = 3", 'target = "11"'),
        method=('"random"', '"randem"'),
        parameter=("steps = 4", "stps = 4"),
        metric=('"sparseness"', '"pixel_accuracy"'),
    )
    with pytest.raises(ArgumentError) as error:
        checked(plan)
    message = str(error.value)
    assert "4 problems" in message
    for piece in ("method='random'", "steps=...", "compares with a mask", "class in target: '11'"):
        assert piece in message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "images"', 'kind = "texts"', "does not read such data"),
        ('kind = "images"', 'kin = "images"', "does not take these options"),
        ('"pellucid/digits-vit"', '"pellucid/digits-vit"\ndtpe = "float64"', "dtype"),
        ('read = "bundled"', 'read = "bundeld"', "read = 'bundled'"),
        ('read = "bundled"', 'read = "bundled"\ntake = 9', "fewer samples"),
        ('"pellucid/digits-vit"', '"pellucid/digits"', "pellucid/digits-vit"),
        ('"sparseness"', '"text_deletion"', "made for text models"),
        ('"rollout"', '"rollout"\nmodels = ["other"]', "models = ['digits-vit']"),
    ],
)
def test_what_does_not_fit(old, new, said):
    with pytest.raises(ArgumentError, match="1 problem") as error:
        checked(planned(change=(old, new)))
    assert said in str(error.value)


def test_a_plan_that_is_not_there_or_no_plan(tmp_path):
    with pytest.raises(ArgumentError, match="smoke-digits"):
        read_plan("smoke-digit")
    with pytest.raises(ArgumentError, match="no such plan"):
        read_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe = [")
    with pytest.raises(ArgumentError, match="not a TOML file"):
        read_plan(tmp_path / "plan.toml")


def test_a_model_with_nothing_to_do():
    text = PLAN.replace("[[data]]", '[[models]]\nload = "pellucid/reviews-bert"\n[[data]]', 1)
    for part in ('kind = "images"', "steps = 4", 'metric = "sparseness"'):
        text = text.replace(part, part + '\nmodels = ["digits-vit"]')
    with pytest.raises(ArgumentError, match="2 problems") as error:
        checked(planned(text))
    assert "none of the data is for this model" in str(error.value)


# ---- units ---------------------------------------------------------------------------------------


def test_units_are_the_product_and_cover_every_sample_once(study):
    units = list(study.units())
    chunks = [(unit.work["start"], unit.work["count"]) for unit in units[:3]]
    assert chunks == [(0, 3), (3, 3), (6, 2)]
    assert len(units) == 2 * 3
    assert len({unit.key for unit in units}) == 6


def test_an_entry_is_for_the_models_that_it_names():
    text = PLAN.replace("[[data]]", '[[models]]\nload = "pellucid/reviews-bert"\n[[data]]', 1)
    text = text.replace('kind = "images"', 'kind = "images"\nmodels = ["digits-vit"]')
    text = text.replace('kind = "images"', 'kind = "images"', 1)
    text = text.replace("steps = 4", 'steps = 4\nmodels = ["digits-vit"]')
    text = text.replace('metric = "sparseness"', 'metric = "sparseness"\nmodels = ["digits-vit"]')
    text += '[[data]]\nread = "bundled"\nkind = "texts"\nmodels = ["reviews-bert"]\n'
    text += '[[metrics]]\nmetric = "text_deletion"\nmodels = ["reviews-bert"]\n'
    found = checked(planned(text))
    assert {(m.name, d.options["kind"]) for m, d, _ in found.combinations()} == {
        ("digits-vit", "images"),
        ("reviews-bert", "texts"),
    }
    assert [one.what for one in found.metrics_for(found.plan.models[1])] == ["text_deletion"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("chunk = 3", "chunk = 3\nseed = 1"),
        ("chunk = 3", 'chunk = 3\ntarget = "label"'),
        ("chunk = 3", 'chunk = 3\ntarget = "4"'),
        ("steps = 4", "steps = 5"),
        ('metric = "sparseness"', 'metric = "insertion"'),
        ("pellucid/digits-vit", 'pellucid/digits-vit"\ndtype = "float64'),
    ],
)
def test_keys_change_with_what_decides_numbers(study, old, new):
    assert not set(keys(planned(change=(old, new)))) & {unit.key for unit in study.units()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("chunk = 3", "chunk = 3\nbatch_size = 2"),
        ("steps = 4", 'name = "deletion(steps=4)"\nsteps = 4'),
        ('"pellucid/digits-vit"', '"pellucid/digits-vit"\nname = "another name"'),
        ('kind = "images"', 'name = "digits"\nkind = "images"'),
    ],
)
def test_keys_do_not_change_with_what_decides_none(study, old, new):
    assert keys(planned(change=(old, new))) == [unit.key for unit in study.units()]


def test_another_method_leaves_the_keys_of_the_others(study):
    more = keys(planned(PLAN + '[[methods]]\nmethod = "vtranm"\n'))
    assert len(more) == 9
    assert more[:6] == [unit.key for unit in study.units()]


# ---- what a unit finds ---------------------------------------------------------------------------


def test_rows_are_what_explain_and_measure_say(tmp_path, digits):
    run(planned(), tmp_path)
    found = {}
    with Store.reading(tmp_path) as store:
        for record in store.records():
            for row in record.rows:
                found[record.labels["method"], row.measure, row.sample] = row
            maps = store.maps(record)
            numbers = range(record.work["start"], record.work["start"] + record.work["count"])
            assert {f"scores/{n}" for n in numbers} <= set(maps)
    assert len(found) == 2 * 2 * 8
    for path in sample_images():
        for method in ("rollout", "random"):
            explanation = pellucid.explain(digits, path, method=method)
            one = pellucid.measure(digits, explanation, metric="deletion", steps=4)
            row = found[method, "deletion(steps=4)", path.stem]
            assert row.value == pytest.approx(one.value, abs=1e-6)
            assert row.detail["class"] == one.label


def test_a_sample_that_cannot_be_read_is_skipped_and_counted(tmp_path):
    long, fine = "a film " * 400, "A fine film and a moving one to see."
    (tmp_path / "texts.csv").write_text(f"text\n{fine}\n{long}\n{fine} So it is.\n")
    text = f"""
        [[models]]
        load = "pellucid/reviews-bert"
        [[data]]
        read = "csv"
        path = "{tmp_path}/texts.csv"
        text = "text"
        name = "texts"
        [[methods]]
        method = "random"
        [[metrics]]
        metric = "text_deletion"
    """
    run(planned(text), tmp_path / "run")
    (cell,) = table_of(tmp_path / "run").cells
    assert (cell.samples, list(cell.skipped.values())) == (2, [1])
    assert "long" in next(iter(cell.skipped))


def test_what_people_marked_is_compared_with(tmp_path, reviews, monkeypatch):
    """Words are those of the sample, which need not be what white space says."""
    words, marks = ("A", "fine film", ",", "and", "a", "moving", "one"), [0, 1, 0, 0, 0, 1, 0]
    marked = data.of([data.Sample(" ".join(words), "s", truth={"rationale": marks}, words=words)])
    monkeypatch.setitem(samples.READERS, "marked", lambda: marked)
    text = PLAN.replace("pellucid/digits-vit", "pellucid/reviews-bert")
    text = text.replace('read = "bundled"\nkind = "images"', 'read = "marked"')
    text = text.replace('metric = "deletion"\nsteps = 4', 'metric = "rationale_auroc"')
    text = text.replace('metric = "sparseness"', 'metric = "rationale_cosine"')
    run(planned(text), tmp_path)
    for cell in table_of(tmp_path).cells:
        one = pellucid.explain(reviews, " ".join(words), method=cell.group[-1])
        truth = (marked[0].spans, marks)
        found = pellucid.measure(reviews, one, metric=cell.measure, truth=truth)
        assert cell.value == pytest.approx(found.value)


def test_processes_find_the_same(tmp_path):
    """One thread here and there: the numbers agree to the last bit."""
    assert torch.get_num_threads() == 1
    text = PLAN.replace('[[methods]]\nmethod = "random"\n', "")
    run(planned(text), tmp_path / "a")
    run(planned(text), tmp_path / "b", engine="process", workers=1)
    seals = []
    for folder in ("a", "b"):
        with Store.reading(tmp_path / folder) as store:
            seals.append([(record.seal, record.maps_digest) for record in store.records()])
    assert seals[0] == seals[1]


def test_a_probe_counts_what_a_run_costs_and_writes_nothing(tmp_path, monkeypatch, study):
    monkeypatch.chdir(tmp_path)
    found = estimates(study)
    assert [(one.units, one.samples) for one in found] == [(3, 8), (3, 8)]
    assert all(one.forwards >= 8 * 4 and one.seconds > 0 for one in found)
    assert os.listdir(tmp_path) == []


def test_workers_of_the_serial_engine():
    with pytest.raises(ArgumentError, match="--engine process --workers 2"):
        engines.engine_named("serial", 2)
