"""The method `slalom` against planted SLALOMs, its identities, and inputs hard to explain."""

from __future__ import annotations

import math

import pytest
import torch

import pellucid
from pellucid import ArgumentError, SlalomExplanation, StoreError, Target
from pellucid.methods._coalitions import coalitions
from pellucid.methods._token_groups import stretches, whole_words
from pellucid.surrogates import Slalom, crossed, samples
from pellucid.viz import page
from pellucid.viz.terminal import print_explanation

TEXT = "the film is very fine but not at all slow"
WORDS = TEXT.split()


def planted(words=WORDS, base=(), spread=1.0, seed=3):
    """A SLALOM of words, with one member more that is always there if `base` is its value."""
    made = torch.Generator().manual_seed(seed)
    units = (*dict.fromkeys(words), *(["base"] if base else []))
    value = 2 * torch.randn(len(units), generator=made, dtype=torch.float64)
    importance = spread * torch.randn(len(units), generator=made, dtype=torch.float64)
    if base:
        value[-1], importance[-1] = base
    return Slalom(units, value, importance, special=("base",) if base else ())


def model_of(slalom):
    """A black box whose log-odds of "yes" are the SLALOM's output."""

    def function(texts):
        output = slalom.predict([text.split() for text in texts])
        return torch.stack([torch.zeros_like(output), output], dim=1)

    return pellucid.blackbox(function, kind="text", labels=["no", "yes"], gives="logits")


def explained(slalom, text=TEXT, **params):
    return pellucid.explain(model_of(slalom), text, method="slalom", target="yes", **params)


def close(found, expected, bound):
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=bound)


# ---- what was planted is found -------------------------------------------------------------------


def test_removals_of_a_planted_slalom_are_exact_deletions():
    truth = planted()
    found = explained(truth, members="content", samples=300)
    for i in range(len(WORDS)):
        rest = WORDS[:i] + WORDS[i + 1 :]
        lost = truth.predict([WORDS])[0] - truth.predict([rest])[0]
        assert abs(found.scores[i] - lost) < 1e-3
    assert found.fidelity > 0.999
    assert found.signed


@pytest.mark.parametrize("design", ["short", "mixed", "pairs"])
def test_values_and_importances_are_those_planted(design):
    truth = planted(spread=0.7)
    found = explained(truth, members="content", design=design, samples=400, whole=0.0)
    close(found.values, truth.value, 0.02)
    close(found.importance, truth.importance - truth.importance.mean(), 0.02)
    assert found.identified.all()


def test_the_permanent_member_is_what_every_input_has():
    truth = planted(base=(-3.0, 1.2), spread=0.7)
    found = explained(truth, design="mixed", samples=400)
    kept = found.surrogate
    at = kept.units.index("permanent")
    assert abs(float(kept.value[at]) + 3.0) < 0.02
    content = truth.importance[:-1].mean()
    assert abs(float(kept.importance[at] - (truth.importance[-1] - content))) < 0.02
    assert abs(found.predict(WORDS) + 3.0) < 0.02
    without = explained(truth, design="mixed", samples=400, preset="content")
    assert without.fidelity < found.fidelity


def test_classes_have_values_of_their_own_and_one_importance():
    found = explained(planted(), samples=300)
    of_classes = found.extras["values_of_classes"]
    close(of_classes.sum(dim=1), torch.zeros(len(WORDS)), 1e-9)
    close(of_classes[:, 1] - of_classes[:, 0], found.values, 1e-3 * float(found.values.abs().max()))


def test_logits_of_what_is_left_give_the_explained_number(tiny):
    model = tiny("bert")
    target = Target.log_odds(1)
    case = pellucid.Case(model, model.encode(["the film is fine", "a bad film"], target), target)
    keep = torch.rand(2, 5, case.mask.shape[1], generator=torch.Generator().manual_seed(0)) > 0.5
    logits = case.drop_logits(keep)
    assert logits.shape == (2, 5, 1, 3)
    others = logits[:, :, 0, [0, 2]].double().logsumexp(dim=-1)
    close(case.drop(keep), logits[:, :, 0, 1].double() - others, 1e-6)


# ---- identities ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one(tiny_bert):
    return pellucid.explain(tiny_bert, TEXT, method="slalom", samples=200)


@pytest.fixture(scope="module")
def tiny_bert():
    return pellucid.testing.tiny.build("bert", dtype=torch.float64)


def test_readings_keep_their_identities(one):
    assert isinstance(one, SlalomExplanation)
    close(one.contribution.sum(), torch.tensor(one.predict(), dtype=torch.float64), 1e-9)
    close(one.gradient.sum(), torch.tensor(0.0), 1e-9)
    close(one.linear, one.importance.exp() * one.values, 1e-9)
    share = one.importance.softmax(dim=0)  # all tokens make up one SLALOM, [CLS] and [SEP] too
    close(one.contribution, share * one.values, 1e-9)
    content = [i for i, s in enumerate(one.segments) if s.role == "content"]
    for i in content:
        assert abs(one.scores[i] - (one.predict() - one.predict(removed=[i]))) < 1e-9
    close(one.removal, one.scores, 1e-12)
    special = [i for i in range(len(one.segments)) if i not in content]
    assert not one.scores[special].any()
    everything = one.predict() - one.predict(removed=content)
    close(one.shapley().sum(), torch.tensor(everything, dtype=torch.float64), 1e-8)
    assert not one.shapley()[special].any()


def test_it_is_the_same_after_saving_and_loading(one, tmp_path):
    again = pellucid.Explanation.load(one.save(tmp_path / "one.pellucid"))
    assert isinstance(again, SlalomExplanation)
    assert again.predict(["film"]) == one.predict(["film"])
    assert torch.equal(again.shapley(), one.shapley())
    assert again.fidelity == one.fidelity
    assert again.to_dict()["method"] == "slalom"


def test_extras_that_are_no_slalom_are_refused(one):
    from dataclasses import replace

    with pytest.raises(ArgumentError, match="not the readings of a SLALOM"):
        replace(one, extras={**one.extras, "values": one.extras["values"][:-1]})
    with pytest.raises(ArgumentError, match="not finite: importance"):
        replace(one, extras={**one.extras, "importance": one.extras["importance"] / 0})


def test_a_damaged_file_is_a_store_error(one, tmp_path, monkeypatch):
    monkeypatch.setattr(SlalomExplanation, "__post_init__", lambda self: None)
    from dataclasses import replace

    short = replace(one, extras={**one.extras, "values": one.extras["values"][:-1]})
    path = short.save(tmp_path / "short.pellucid")
    monkeypatch.undo()
    with pytest.raises(StoreError, match="damaged"):
        pellucid.Explanation.load(path)


def test_a_text_read_in_windows_has_scores_and_no_surrogate(tiny_bert):
    found = pellucid.explain(
        tiny_bert, " ".join(["film"] * 100), method="slalom", samples=20, long="windows"
    )
    assert type(found) is pellucid.Explanation
    assert not found.extras


# ---- units ---------------------------------------------------------------------------------------


def test_words_get_back_the_score_of_their_unit(tiny_bert):
    text = "the film is slowly unfine and slower"
    found = pellucid.explain(tiny_bert, text, method="slalom", unit="word", samples=120)
    split = [player for player in found.players if len(player) > 1]
    assert split
    for player, word in zip(found.players, found.words(), strict=True):
        lost = found.predict() - found.predict(removed=player)
        assert abs(word.score - lost) < 1e-8
        assert abs(found.predict(removed=[word.text]) - found.predict(removed=player)) < 1e-12
    with pytest.raises(ArgumentError, match="only taken away together"):
        found.predict(removed=[split[0][0]])


def test_equal_tokens_are_one_unit_of_their_type(tiny_bert):
    text = "a fine film and a fine plot"
    found = pellucid.explain(tiny_bert, text, method="slalom", unit="type", samples=100)
    names = [segment.text for segment in found.segments]
    places = [i for i, name in enumerate(names) if name == "fine"]
    assert len(places) == 2
    for reading in (found.values, found.importance, found.removal, found.shapley()):
        close(reading[places[0]], reading[places[1]], 1e-10)
    assert len(found.players) == 7
    apart = pellucid.explain(tiny_bert, text, method="slalom", samples=100)
    assert apart.values[places[0]] != apart.values[places[1]]


def test_a_span_is_one_unit(tiny_bert):
    text = "the film is very fine"
    found = pellucid.explain(tiny_bert, text, method="slalom", spans=[(12, 21)], samples=60)
    assert found.players == ((1,), (2,), (3,), (4, 5))
    assert found.removal[4] == found.removal[5]


@pytest.mark.parametrize(
    ("spans", "what"),
    [
        ([(0, 8), (4, 8)], "share a token"),
        ([(90, 95)], "no token"),
        ([(5, 3)], "end"),
        ([3], "not pairs"),
        ("ab", "not pairs"),
    ],
)
def test_spans_that_are_none(tiny_bert, spans, what):
    with pytest.raises(ArgumentError, match=what):
        pellucid.explain(tiny_bert, "the film is fine", method="slalom", spans=spans)


def test_spans_are_of_one_text(tiny_bert):
    item = tiny_bert.read(("a film", "a plot"), Target.predicted())
    with pytest.raises(ArgumentError, match="characters of one text"):
        stretches(item, whole_words(item), [(0, 3)])
    assert pellucid.explain(tiny_bert, ("a film", "a plot"), method="slalom", samples=30).fidelity


@pytest.mark.parametrize("family", ["vit", "gpt2"])
def test_other_models_are_explained_alike(family, tiny):
    model = tiny(family)
    raw = pellucid.testing.tiny.sample_inputs(model)[0]
    found = pellucid.explain(model, raw, method="slalom", samples=60)
    patch = next(i for i, s in enumerate(found.segments) if s.role == "content")
    lost = found.predict() - found.predict(removed=[patch])
    assert abs(found.scores[patch] - lost) < 1e-5


# ---- designs and presets -------------------------------------------------------------------------


def test_deletions_leave_out_each_number_alike():
    stays = coalitions(
        "deletion", 6000, 12, range(12), torch.Generator().manual_seed(0), most=5, length=2
    )
    gone = (~stays).sum(dim=1)
    share = gone.bincount(minlength=6) / 6000
    assert gone.max() == 5
    close(share, torch.full((6,), 1 / 6), 0.03)
    close((~stays).double().mean(dim=0), torch.full((12,), 2.5 / 12), 0.03)


def test_short_samples_are_drawn_from_first_occurrences():
    stays = coalitions(
        "short", 300, 6, [0, 2, 5], torch.Generator().manual_seed(0), most=5, length=2
    )
    assert not stays[:, [1, 3, 4]].any()
    assert set(stays.sum(dim=1).tolist()) == {1, 2}


def test_pairs_hold_every_unit_equally_often():
    stays = coalitions(
        "pairs", 25, 7, [0, 1, 3, 4, 6], torch.Generator().manual_seed(0), most=5, length=2
    )
    assert stays[:5].sum(dim=1).tolist() == [1] * 5
    assert stays[5:].sum(dim=1).tolist() == [2] * 20
    assert stays[5:].sum(dim=0).tolist() == [8, 8, 0, 8, 8, 0, 8]


@pytest.mark.parametrize("preset", ["eff", "fidel", "content", "importance"])
def test_presets_run(preset, tiny_bert):
    found = pellucid.explain(tiny_bert, "a fine film", method="slalom", preset=preset, samples=40)
    assert found.scores.isfinite().all()
    assert math.isfinite(found.fidelity)


def test_the_seed_decides(tiny_bert):
    def run(seed):
        return pellucid.explain(tiny_bert, TEXT, method="slalom", samples=60, seed=seed).scores

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


# ---- how far to trust it -------------------------------------------------------------------------


def noisy(design, noise, many=12, budget=400, seed=0):
    """A planted SLALOM of many units, its fit to noisy scores, and the refits of that."""
    truth = planted([str(i) for i in range(many)], seed=seed)
    drawn = samples(truth.units, budget, design=design, most=4, seed=seed).sequences
    made = torch.Generator().manual_seed(seed)
    scores = truth.predict(drawn)
    scores = scores + noise * torch.randn(len(scores), generator=made, dtype=torch.float64)
    settings = {"units": truth.units, "value_prior": 1e-6, "importance_prior": 1e-5}
    fit = Slalom.fit(drawn, scores, **settings)
    settings.pop("units")
    return truth, fit, crossed(fit, drawn, scores, **settings)


def test_standard_errors_are_of_the_size_of_errors():
    found = []
    for seed in range(4):
        truth, fit, told = noisy("mixed", 0.05, seed=seed)
        away = fit.importance - (truth.importance - truth.importance.mean())
        found.append((away / told.importance_error).square())
    assert 0.3 < float(torch.cat(found).mean()) < 2.5


def test_importances_that_count_as_told_are_right():
    """From deletions with noise alone few are, and those are close to the truth."""
    from pellucid.methods._fitted_slalom import _identified

    right, told, all_errors = [], 0, []
    for seed in range(5):
        truth, fit, refits = noisy("deletion", 0.02, many=16, budget=300, seed=seed)
        own = _identified(fit, refits)
        true = truth.importance
        away = (fit.importance - true) - (fit.importance - true)[own].median()
        right.append(away[own])
        all_errors.append(away[~own].abs())
        told += int(own.sum())
    assert told >= 10
    assert float(torch.cat(right).abs().median()) < 0.5
    assert float(torch.cat(all_errors).median()) > float(torch.cat(right).abs().median())


def test_fidelity_is_of_samples_that_were_left_out():
    _, fit, told = noisy("mixed", 2.0, budget=60)
    assert fit.report.r2 > told.r2


def test_resolution_goes_from_the_samples_to_the_prior():
    truth = planted([str(i) for i in range(8)])
    drawn = samples(truth.units, 200, design="mixed").sequences
    scores = truth.predict(drawn)
    free, tied = (
        Slalom.fit(drawn, scores, importance_prior=prior).report.resolution for prior in (1e-9, 1e6)
    )
    assert float(free.min()) > 0.8  # all but the gauge's part
    assert float(tied.max()) < 1e-2
    assert (Slalom.fit(drawn, scores, importance_prior=0.0).report.resolution == 1).all()


# ---- inputs that are hard to explain -------------------------------------------------------------


def test_one_token_alone_says_that_nothing_can_be_told_apart(tiny_bert):
    found = pellucid.explain(tiny_bert, "fine", method="slalom", samples=20)
    assert any("one unit" in note for note in found.notes)
    assert not found.identified.any()
    bare = explained(planted(["fine"]), "fine", members="content", samples=20)
    assert bare.scores.isfinite().all()
    assert bare.shapley().isfinite().all()


def test_a_function_that_never_changes_is_told(tiny_bert):
    model = pellucid.blackbox(
        lambda texts: torch.tensor([[0.0, 1.5]]).repeat(len(texts), 1),
        kind="text",
        labels=["no", "yes"],
        gives="logits",
    )
    found = pellucid.explain(model, TEXT, method="slalom", samples=50)
    assert found.scores.abs().max() < 1e-9
    assert found.scores.isfinite().all()
    assert found.fidelity == 1.0
    assert any("nothing to explain" in note for note in found.notes)


def test_identical_tokens_share_what_they_do(tiny_bert):
    found = pellucid.explain(tiny_bert, "bad bad bad bad", method="slalom", samples=60, unit="type")
    content = found.scores[1:-1]
    close(content, content[:1].expand(4), 1e-9)


def test_too_few_samples_are_said_to_be_few():
    found = explained(planted(), samples=8)
    assert any("different samples" in note for note in found.notes)


def test_scores_that_are_not_finite_stop_with_an_error():
    def function(texts):
        return torch.tensor([[0.0, math.nan if "film" not in text else 1.0] for text in texts])

    model = pellucid.blackbox(function, kind="text", labels=["no", "yes"], gives="logits")
    with pytest.raises(pellucid.NumericalError, match="not finite"):
        pellucid.explain(model, TEXT, method="slalom", samples=20)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"samples": 1}, "samples"),
        ({"most": 0}, "most"),
        ({"length": 0}, "length"),
        ({"whole": -1.0}, "weight"),
        ({"design": "triples"}, "no such choice"),
        ({"unit": "sentence"}, "no such choice"),
        ({"members": "cls"}, "no such choice"),
        ({"preset": "efficient"}, "preset"),
    ],
)
def test_parameters_that_are_none(tiny_bert, params, what):
    with pytest.raises(ArgumentError, match=what):
        pellucid.explain(tiny_bert, TEXT, method="slalom", **params)


@pytest.mark.parametrize("removed", [["sofa"], [0], [99]])
def test_what_cannot_be_removed_is_named(one, removed):
    with pytest.raises(ArgumentError):
        one.predict(removed=removed)


# ---- the picture ---------------------------------------------------------------------------------


def test_the_page_shows_the_plane_and_escapes_its_names(tiny_bert):
    found = pellucid.explain(tiny_bert, "a <b> film & fine", method="slalom", samples=60)
    html = page([found])
    assert 'class="chart plane"' in html
    assert html.count("<circle") == len(found.players)
    assert "<b>" not in html
    assert "fidelity" in html


def test_the_terminal_shows_the_plane(one, capsys):
    from rich.console import Console

    print_explanation(one, Console(width=90, highlight=False))
    shown = capsys.readouterr().out
    for word in ("importance", "removal", "held-out fidelity", "value"):
        assert word in shown
