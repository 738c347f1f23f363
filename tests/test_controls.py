"""Controls say nothing of a model: a flat map, and a hill over the middle."""

import torch

import pellucid
from pellucid.models import sample_images


def test_uniform_scores_are_one_for_every_token_of_the_input():
    model = pellucid.load("pellucid/reviews-bert")
    short, long = pellucid.explain(model, ["a film", "a film that is long"], method="uniform")
    assert short.scores.tolist() == [1.0] * len(short.scores)
    assert len(long.scores) > len(short.scores)
    assert {word.score for word in long.words()} == {1.0}


def test_the_centre_is_a_symmetric_hill_over_the_patches():
    model = pellucid.load("pellucid/digits-vit")
    first, second = pellucid.explain(model, sample_images()[:2], method="centre")
    grid = first.patches()
    assert torch.equal(grid, second.patches())
    assert torch.equal(grid, grid.flip(0))
    assert torch.equal(grid, grid.T)
    middle = grid[grid.shape[0] // 2]
    assert (middle[len(middle) // 2 :].diff() < 0).all()
    y = torch.tensor(-6 / 7)  # the corner of 7 by 7 patches
    assert torch.isclose(grid[0, 0].float(), torch.exp(-2 * y**2 / (2 * 0.25)))
