"""Monitors of walks against closed forms, and against slow versions of their definitions."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import pellucid
from pellucid import ArgumentError, Target, Trajectory
from pellucid._trajectory import SERIES, SOMETIMES
from pellucid.explorer import recorder as recording
from pellucid.explorer.regions import Box
from pellucid.explorer.series import distributions, fisher_arc, headed, turn
from pellucid.testing.tiny import build, sample_inputs, word_piece

F64 = torch.float64


def walk(adapter, raw=None, **options):
    raw = sample_inputs(adapter)[0] if raw is None else raw
    return pellucid.explore(adapter, raw, **{"steps": 6, "save_every": 2} | options)


@pytest.fixture(scope="module")
def toy():
    """A trajectory to put points and probabilities of one's own into."""
    return walk(build("bert", dtype=F64))


# ---- closed forms --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_full_reversal_inverts_every_pair(toy, n):
    p = torch.arange(1, n + 1, dtype=F64) / (n * (n + 1) / 2)
    found = replace(toy, probabilities=torch.stack([p, p.flip(0), p.flip(0)])).ranking_changes
    assert found.tolist() == [n * (n - 1) // 2, 0]


def test_rankings_ignore_ties_and_temperature(toy):
    rows = [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.4, 0.4, 0.2], [0.3, 0.5, 0.2]]
    found = replace(toy, probabilities=torch.tensor(rows, dtype=F64)).ranking_changes
    assert found.tolist() == [1, 0, 0]
    logits = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=F64)
    p = torch.stack([(logits / t).softmax(0) for t in (0.5, 1.0, 4.0)])
    assert replace(toy, probabilities=p).ranking_changes.tolist() == [0, 0]


def test_changes_of_the_prediction(toy):
    found = replace(toy, predicted=("a", "a", "b", "a")).prediction_changes
    assert found.tolist() == [False, True, True]


def test_the_fisher_arc_of_a_known_path():
    angles = torch.tensor([0.0, 0.1, 0.1 + 1e-9, 0.7, math.pi / 2], dtype=F64)
    p = torch.stack([angles.cos() ** 2, angles.sin() ** 2], dim=1)
    found = fisher_arc(p[:-1, None], p[1:, None])
    assert torch.allclose(found, 2 * angles.diff(), rtol=1e-6, atol=1e-15)
    assert fisher_arc(p[:1, None], p[-1:, None]).item() == pytest.approx(math.pi, rel=1e-12)


def test_labels_that_do_not_exclude_each_other_are_orthogonal_directions():
    t, u = torch.tensor([0.3, 0.4], dtype=F64), torch.tensor([0.6, 0.8], dtype=F64)
    one, other = (distributions("multilabel", a.sin() ** 2) for a in (t, u))
    assert fisher_arc(one, other).item() == pytest.approx(2 * math.hypot(0.3, 0.4), rel=1e-12)


def test_turning_around_a_square():
    corners = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, -2]], dtype=F64)
    lengths, headings = headed(corners[1:, None, None], corners[0, None, None])
    before = torch.cat([torch.zeros_like(headings[:1]), headings[:-1]])
    assert lengths[:, 0].tolist() == [1, 1, 1, 1, 0, 2]
    angles = turn(before, headings)[:, 0] / math.pi
    assert angles.tolist() == pytest.approx([0, 0.5, 0.5, 0.5, 0, 0], abs=1e-15)


def test_small_turns_keep_their_digits():
    for angle in (1e-12, 1e-5, math.pi - 1e-9, math.pi):
        u = torch.tensor([1.0, 0.0], dtype=F64).view(1, 1, 1, 2)
        v = torch.tensor([math.cos(angle), math.sin(angle)], dtype=F64).view(1, 1, 1, 2)
        assert turn(u, v).item() == pytest.approx(angle, rel=1e-12)


def test_the_effective_rank_counts_directions(toy):
    axes = torch.eye(8, dtype=F64)
    line = torch.outer(torch.arange(5, dtype=F64), axes[0])[:, None]
    assert replace(toy, points=line).effective_rank == pytest.approx(1, abs=1e-12)
    cross = torch.cat([torch.zeros(1, 8, dtype=F64), axes[:3]])[:, None]
    assert replace(toy, points=cross).effective_rank == pytest.approx(3, abs=1e-12)
    assert replace(toy, points=line[:1]).effective_rank == 0


def cloud(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(40, 2, n, generator=generator, dtype=F64) * torch.arange(1, n + 1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_path_twice_as_wide_has_two_to_the_n_times_the_volume(toy, n):
    one = replace(toy, points=cloud(n))
    other = replace(toy, points=one.points[:1] + 2 * (one.points - one.points[:1]))
    found = other.log_volume_ratio(one, share=1.0)
    assert torch.allclose(found, torch.full((2,), n * math.log(2), dtype=F64), atol=1e-10)
    assert torch.allclose(one.log_volume_ratio(one), torch.zeros(2, dtype=F64))
    assert torch.allclose(one.log_volume_ratio(other, share=1.0), -found)


def test_the_volume_is_that_of_the_box_around_the_principal_axes(toy):
    grid = torch.cartesian_prod(*(torch.arange(k, dtype=F64) for k in (9, 5, 3)))  # 8 x 4 x 2
    turned, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))
    points = (grid @ turned.double().T)[:, None]
    volume = replace(toy, points=points).log_volume(share=1.0)
    assert volume.exp().item() == pytest.approx(64, rel=1e-5)
    variances = torch.tensor([60 / 9, 2, 2 / 3])  # of the three sides; the first two have 93 %
    assert variances[:1].sum() < 0.9 * variances.sum() < variances[:2].sum()
    assert replace(toy, points=points).log_volume().exp().item() == pytest.approx(32, rel=1e-5)


def test_tokens_that_did_not_move_have_no_volume(toy):
    points = cloud(3)
    points[:, 1] = points[:1, 1]
    one = replace(toy, points=points)
    assert one.log_volume().isnan().tolist() == [False, True]
    assert one.log_volume_ratio(one).isnan().tolist() == [False, True]


def test_an_axis_that_one_walk_did_not_take_counts_for_neither(toy):
    flat, full = torch.zeros(2, 32, 1, 2, dtype=F64)
    flat[:, 0, 0] = torch.linspace(-1, 1, 32)
    full[:, 0, 0] = torch.linspace(-3, 3, 32)
    full[:, 0, 1] = torch.where(full[:, 0, 0].abs() < 1.5, 1.0, -1.0)  # not correlated with it
    one, other = replace(toy, points=full), replace(toy, points=flat)
    assert one.log_volume_ratio(other, share=1.0).exp().item() == pytest.approx(3, rel=1e-9)


def test_walks_of_other_tokens_have_no_ratio(toy):
    other = walk(build("bert", dtype=F64), tokens=[1, 2], steps=2)
    with pytest.raises(ArgumentError, match="same tokens"):
        toy.log_volume_ratio(other)
    for share in (0, 1.5):
        with pytest.raises(ArgumentError, match="share of a variance"):
            toy.log_volume(share=share)


def test_displacement_of_single_tokens(toy):
    found = toy.token_displacement
    assert found.shape == toy.points.shape[:2]
    whole = (found**2).sum(dim=1).sqrt()
    assert torch.allclose(whole, toy.displacement[toy.iterations])


# ---- the series of real walks, by the letter of their definitions --------------------------------

WALKS = {
    "stay": ("vit", {}),
    "several, one ends early": ("bert", {"distance": 0.2, "several": True}),
    "in a box": ("vit", {"within": "bounds", "persistence": 0.5}),
    "in a norm": ("bert", {"within": "layernorm"}),
    "fisher": ("bert", {"output": "fisher", "goal": "leave", "step": 0.3}),
    "a vocabulary": ("bert-mlm", {"steps": 4}),
    "hidden": ("vit", {"output": "hidden"}),
    "pixels": ("vit", {"space": "pixels"}),
    "trial in a box": ("bert", {"direction": "trial", "within": "bounds", "step": 0.5}),
}


@pytest.mark.parametrize("little", [False, True], ids=["together", "one by one"])
@pytest.mark.parametrize("name", WALKS)
def test_series_are_what_they_are_called(name, little, monkeypatch):
    family, options = WALKS[name]
    adapter = build(family, dtype=F64)
    several = options.get("several")
    raw = sample_inputs(adapter) if several else sample_inputs(adapter)[:1]
    seen = []

    def note(self, k, step, real=recording.Recorder.note):
        state, level = self._walk.state, self._walk.level
        x = level.state(state.w, torch.arange(len(state.w))).clone()
        seen.append((x, state.logits.softmax(dim=-1), self._walk.coordinates.psi(state.y).clone()))
        real(self, k, step)

    monkeypatch.setattr(recording.Recorder, "note", note)
    if little:
        monkeypatch.setattr(recording, "_MEMORY", 1)
    given = {key: value for key, value in options.items() if key != "several"}
    walks = pellucid.explore(adapter, raw, **{"steps": 7, "save_every": 3} | given)
    for row, found in enumerate(walks):
        own = [tuple(part[row] for part in parts) for parts in seen[: found.steps + 1]]
        for series, values in slowly(own).items():
            expected = torch.tensor(values, dtype=F64)
            assert torch.allclose(found.series[series], expected, rtol=1e-6, atol=1e-12), series


def slowly(points):
    """Every series from the states, probabilities and measured outputs, one step at a time."""
    (x0, p0, psi0), out = points[0], {}
    steps = [b[0] - a[0] for a, b in zip(points, points[1:])]  # noqa: B905, RUF007
    out["step"] = [0.0] + [float(v.norm()) for v in steps]
    out["length"] = [sum(out["step"][: k + 1]) for k in range(len(points))]
    out["displacement"] = [float((x - x0).norm()) for x, _, _ in points]
    out["drift"] = [float((p - p0).abs().max()) for _, p, _ in points]
    out["variation"] = [float((p - p0).abs().sum() / 2) for _, p, _ in points]
    out["divergence"] = [max(float((p0 * (p0 / p).log()).sum()), 0) for _, p, _ in points]
    out["output_drift"] = [float((psi - psi0).norm()) for _, _, psi in points]
    output, arc, angles = [0.0], [0.0], [0.0]
    for (_, p, psi), (_, q, phi) in zip(points, points[1:]):  # noqa: B905, RUF007
        output.append(output[-1] + float((phi - psi).norm()))
        half = float((p.sqrt() - q.sqrt()).norm()) / 2
        plain = 2 * math.acos(min(1.0, float((p * q).sqrt().sum())))
        assert plain == pytest.approx(4 * math.asin(half), abs=1e-6)
        arc.append(arc[-1] + 4 * math.asin(half))
    for u, v in zip(steps, steps[1:]):  # noqa: B905, RUF007
        size = u.norm() * v.norm()
        angles.append(math.acos(max(-1.0, min(1.0, float((u * v).sum() / size)))) if size else 0.0)
    out["output_length"], out["arc"] = output, arc
    if not any(0 < angle < 1e-3 for angle in angles[1:]):  # where an arc cosine has digits
        out["turn"] = [0.0, *angles][: len(points)]
    return out


def dense(adapter, raw, point, tokens):
    """The eigenvalues of J'J of the logits at a state, rising."""
    batch = adapter.encode([raw], Target.predicted())
    x = adapter.value_at(batch, "embedding").clone()
    x[0, list(tokens)] = point

    def logits(moved):
        whole = x.index_put((torch.tensor([0]), torch.tensor(tokens)), moved)
        return adapter.rows(adapter.output_from(batch, "embedding", whole), batch)[0, 0]

    jacobian = torch.autograd.functional.jacobian(logits, x[0, list(tokens)])
    return torch.linalg.eigvalsh(
        torch.einsum("qtd,qse->tdse", jacobian, jacobian).flatten(2).flatten(0, 1)
    )


def test_the_spectrum_of_a_textbook_walk_is_the_one_each_step_was_taken_by():
    adapter = build("bert", dtype=F64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, goal="leave", preset="paper", scale=0.1, steps=3, save_every=1)
    for k in (1, 2, 3):
        values = dense(adapter, raw, tr.points[k - 1], tr.tokens)
        real = values[values > 1e-9 * values[-1]]
        assert tr.series["rank"][k] == len(real) == 3
        assert tr.series["largest"][k].item() == pytest.approx(values[-1].item(), rel=1e-9)
        assert tr.series["smallest"][k].item() == pytest.approx(real[0].item(), rel=1e-7)
        assert tr.condition[k].item() == pytest.approx((real[-1] / real[0]).item(), rel=1e-7)
    assert tr.series["rank"][0] == 0
    assert tr.condition[0].isnan()


def test_the_spectrum_of_blocks_is_that_of_all_blocks():
    adapter = build("bert", dtype=F64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, preset="published", steps=1)
    values = pellucid.metric_at(adapter, raw, output="logits").token_values()
    assert tr.series["largest"][1].item() == pytest.approx(values.max().item(), rel=1e-9)
    assert tr.series["smallest"][1].item() == pytest.approx(values.min().item(), rel=1e-7)
    assert tr.series["rank"][1] == values.numel()


def test_a_corrected_walk_knows_its_metric_where_it_looked():
    adapter = build("vit", dtype=F64)
    raw = sample_inputs(adapter)[0]
    tr = walk(adapter, raw, output="fisher", steps=40)
    metric = pellucid.metric_at(adapter, raw, output="fisher")
    assert tr.series["largest"][1].item() == pytest.approx(metric.values[0].item(), rel=1e-8)
    assert tr.series["smallest"][1].item() == pytest.approx(metric.values[1].item(), rel=1e-6)
    assert (tr.series["rank"][1:] == 2).all()
    looked = (tr.series["largest"].diff() != 0).sum()
    assert 1 <= looked < tr.steps


def test_walks_without_a_metric_have_no_spectrum():
    tr = walk(build("vit", dtype=F64), direction="isotropic", step=0.1)
    assert set(SERIES) - set(tr.series) == set(SOMETIMES)
    assert tr.condition.isnan().all()
    assert len(tr.condition) == tr.steps + 1


@pytest.mark.parametrize("direction", [None, "isotropic"])
def test_what_a_projection_did(direction, monkeypatch):
    adapter = build("vit", dtype=F64)
    raw = sample_inputs(adapter)[0]
    batch = adapter.encode([raw], Target.predicted())
    x0 = adapter.value_at(batch, "embedding")
    spread = torch.rand(x0.shape, generator=torch.Generator().manual_seed(0), dtype=F64)
    seen = []

    def project(self, x, rows, real=Box.project):
        seen.append((x.clone(), real(self, x, rows)))
        return seen[-1][1]

    monkeypatch.setattr(Box, "project", project)
    rules = {"goal": "leave", "step": 0.6, "within": Box(x0 - spread, x0 + 0.02)}
    tr = walk(adapter, raw, steps=4, direction=direction, tokens=[2, 5, 7], **rules)
    own = [t + adapter.anatomy.prefix if len(x0[0]) > len(tr.segments) else t for t in tr.tokens]

    def probabilities(x):
        whole = x0.clone()
        whole[:, own] = x[:, own]
        return adapter.rows(adapter.output_from(batch, "embedding", whole), batch)[0, 0].softmax(0)

    first, shares = probabilities(x0), tr.series["clamped"]
    for k, (free, projected) in enumerate(seen, 1):
        changed = (free != projected)[:, own].double().mean()
        assert shares[k] == pytest.approx(changed.item(), rel=1e-12)
        before, after = probabilities(free), probabilities(projected)
        assert tr.drift[k] == pytest.approx((after - first).abs().max().item(), rel=1e-9)
        if direction is None:
            told = tr.series["unprojected"][k]
            assert told == pytest.approx((before - first).abs().max().item(), rel=1e-9)
            told = tr.series["projected"][k]
            assert told == pytest.approx((before - after).abs().max().item(), rel=1e-9)
    assert (shares[1:] > 0).all()
    assert (shares[1:] < 1).all()
    assert ("unprojected" in tr.series) == (direction is None)


class TwoLabels(nn.Module):
    """Two labels that do not exclude each other, each decided by one number of the embedding."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(300, 8)

    def forward(self, input_ids):
        return self.table(input_ids).mean(dim=1)[:, :2]


def test_series_where_labels_do_not_exclude_each_other():
    torch.manual_seed(0)
    adapter = pellucid.adapt(
        TwoLabels().eval().double(), word_piece(), labels=["x", "y"], task="multilabel"
    )
    tr = walk(
        adapter, "the film is fine", space="word", direction="isotropic", step=2, save_every=1
    )
    p, arc, divergence = tr.probabilities, [0.0], []
    for one, then in zip(p, p[1:]):  # noqa: B905, RUF007
        angles = [
            2 * math.acos(min(1, math.sqrt(a * b) + math.sqrt((1 - a) * (1 - b))))
            for a, b in zip(one.tolist(), then.tolist(), strict=True)
        ]
        arc.append(arc[-1] + math.hypot(*angles))
    for then in p:
        pairs = torch.stack([torch.stack([q, 1 - q]) for q in (p[0], then)])
        divergence.append(float((pairs[0] * (pairs[0] / pairs[1]).log()).sum()))
    assert tr.series["arc"].tolist() == pytest.approx(arc, abs=1e-6)
    assert tr.series["divergence"].tolist() == pytest.approx(divergence, abs=1e-12)
    assert torch.allclose(tr.series["variation"], (p - p[0]).abs().sum(dim=1))
    assert tr.series["arc"][-1] > 1e-3


@pytest.mark.parametrize("options", [{}, {"preset": "published"}, {"direction": "isotropic"}])
def test_walks_with_more_or_fewer_series_come_back_from_files(options, tmp_path):
    tr = walk(build("bert", dtype=F64), **options)
    back = Trajectory.load(tr.save(tmp_path / "x"))
    assert list(back.series) == list(tr.series)
    assert all(torch.equal(back.series[name], tr.series[name]) for name in tr.series)
    assert torch.equal(back.condition, tr.condition) or tr.condition.isnan().any()
    assert torch.equal(back.ranking_changes, tr.ranking_changes)
    with pytest.raises(ArgumentError, match="series"):
        replace(tr, series={"drift": tr.drift}).plot(series="arc")
