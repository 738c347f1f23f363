"""Explanations as tables and figures: every number in its row, missing libraries named."""

import sys

import numpy as np
import pytest

import pellucid
from pellucid import ArgumentError, compat
from pellucid.testing.tiny import sample_inputs


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def datasets():
    return pytest.importorskip("datasets", reason="datasets is not installed")


# ---- pandas --------------------------------------------------------------------------------------


def test_one_row_a_token(pandas, tiny):
    ex = pellucid.explain(tiny("bert"), ("the film is unfinely", "not bad"), method="random")
    table = ex.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    np.testing.assert_array_equal(table["score"].to_numpy(np.float32), ex.scores.numpy())
    content = table[table["role"] == "content"]
    for row in content.itertuples():
        assert ex.item.parts[row.part][row.start : row.end] == row.token
    special = table[table["role"] == "special"]
    assert special["token"].tolist() == ["[CLS]", "[SEP]", "[SEP]"]
    assert special["start"].isna().all()


def test_one_row_a_word(pandas, tiny):
    ex = pellucid.explain(tiny("bert"), "the film is unfinely bad", method="random")
    table = ex.to_pandas(by="word")
    assert table["word"].tolist() == ["the", "film", "is", "unfinely", "bad"]
    assert table["score"].tolist() == [word.score for word in ex.words()]


def test_one_row_a_patch(pandas, tiny):
    ex = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit"))[0], method="random")
    patches = ex.to_pandas().query("role == 'content'")
    rows, columns = ex.item.grid
    grid = patches["score"].to_numpy().reshape(rows, columns)
    np.testing.assert_allclose(grid, ex.patches().numpy(), rtol=1e-6)
    last = patches.iloc[-1]
    assert (last["bottom"], last["right"]) == ex.item.view.shape[:2]


def test_one_row_a_pixel(pandas, tiny):
    ex = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit"))[0], method="gradient")
    table = ex.to_pandas().pivot(index="row", columns="column", values="score")
    np.testing.assert_array_equal(table.to_numpy(np.float32), ex.scores.numpy())


def test_rows_that_do_not_exist(tiny):
    ex = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit"))[0], method="random")
    with pytest.raises(ArgumentError, match="words"):
        ex.to_pandas(by="word")
    with pytest.raises(ArgumentError, match="'token' or 'word'"):
        ex.to_pandas(by="tokens")


# ---- datasets ------------------------------------------------------------------------------------


def test_texts_as_a_dataset(datasets, tiny):
    found = pellucid.explain(tiny("bert"), sample_inputs(tiny("bert")), method="random")
    table = compat.to_dataset(found)
    assert isinstance(table, datasets.Dataset)
    assert len(table) == len(found)
    for row, ex in zip(table, found, strict=True):
        assert row["texts"] == list(ex.item.parts)
        np.testing.assert_array_equal(np.float32(row["scores"]), ex.scores.numpy())
        assert len(row["tokens"]) == len(row["roles"]) == len(row["scores"])
        assert row["word_scores"] == [word.score for word in ex.words()]
        assert (row["label"], row["index"], row["value"]) == (ex.label, ex.index, ex.value)


@pytest.mark.parametrize("method", ["random", "gradient"])
def test_images_as_a_dataset(datasets, method, tiny):
    found = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit")), method=method)
    for row, ex in zip(compat.to_dataset(found), found, strict=True):
        np.testing.assert_array_equal(np.asarray(row["image"]), ex.item.view)
        scores = np.float32(row["scores"]).reshape(row["shape"])
        np.testing.assert_array_equal(scores, ex.scores.numpy())


def test_one_explanation_is_a_dataset_of_one_row(datasets, tiny):
    assert len(compat.to_dataset(pellucid.explain(tiny("bert"), "fine", method="random"))) == 1


def test_a_dataset_has_one_kind_of_rows(tiny):
    text = pellucid.explain(tiny("bert"), "fine", method="random")
    image = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit"))[0], method="random")
    with pytest.raises(ArgumentError, match="texts and of images"):
        compat.to_dataset([text, image])
    with pytest.raises(ArgumentError, match="no explanations"):
        compat.to_dataset([])


@pytest.mark.parametrize("library", ["pandas", "datasets"])
def test_a_missing_library_is_named(library, monkeypatch, tiny):
    ex = pellucid.explain(tiny("bert"), "fine", method="random")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ArgumentError, match=rf"pip install 'pellucid\[{library}\]'"):
        ex.to_pandas() if library == "pandas" else compat.to_dataset(ex)


# ---- figures -------------------------------------------------------------------------------------


def test_explanations_and_walks_share_a_figure(tiny):
    """Every plot draws on the axes that it is given, and on nothing else."""
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(9, 6))
    axes = figure.subplots(2, 2).ravel()
    text = pellucid.explain(tiny("bert"), "the film is fine", method="random")
    image = pellucid.explain(tiny("vit"), sample_inputs(tiny("vit"))[0], method="random")
    walk = pellucid.explore(tiny("bert"), "the film is fine", steps=3)
    assert text.plot(axes[0]) is axes[0]
    assert image.plot(ax=axes[1]) is axes[1]
    assert walk.plot(ax=axes[2]) is axes[2]
    assert walk.plot(axes[3], series="drift") is axes[3]
    assert len(figure.axes) == 6, "four, and a colour bar for each map"
    assert all(ax.get_title() for ax in axes)
