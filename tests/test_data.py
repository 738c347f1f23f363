"""Data sets: what they hold, how samples are chosen, and every reader against files made here."""

import random

import numpy as np
import pytest
import torch
from PIL import Image

import pellucid
from pellucid import ArgumentError, InputError, data
from pellucid._words import word_scores
from pellucid.data import Dataset, Sample

WORDS = ("the", "finely", "made", "film")
TEXT = " ".join(WORDS)


def grey(value, size=(6, 4)):
    return Image.new("RGB", size, (value,) * 3)


def texts(count=20):
    return data.of(
        Sample(f"text {i}", f"n{i}", label=i % 3, about={"split": "test" if i % 4 else "train"})
        for i in range(count)
    )


# ---- samples -------------------------------------------------------------------------------------


def test_words_know_where_they_stand():
    sample = Sample(TEXT, "a", words=WORDS)
    assert [TEXT[a:b] for a, b in sample.spans] == list(WORDS)
    odd = Sample("march 4  end", "a", words=("march 4", "", "end"))
    assert odd.spans == ((0, 7), (8, 8), (9, 12))


def test_spans_are_what_word_scores_takes(tiny):
    sample = Sample(TEXT, "a", words=WORDS)
    found = pellucid.explain(tiny("bert"), sample.input, method="random")
    scores = word_scores(found, sample.spans)
    assert scores.tolist() == pytest.approx([word.score for word in found.words()])


def test_truth_is_kept_as_plain_numbers():
    sample = Sample(
        TEXT,
        "a",
        words=WORDS,
        truth={
            "rationale": np.array([0, 0.5, 1, 0]),
            "attention": [torch.tensor([0, 1, 1, 0]), [1, 0, 0, 0]],
            "own": "anything",
        },
    )
    assert sample.truth["rationale"] == (0, 0.5, 1, 0)
    assert sample.truth["attention"] == ((0, 1, 1, 0), (1, 0, 0, 0))
    assert sample.truth["own"] == "anything"


def test_boxes_make_the_mask_unless_there_is_one():
    boxes = [(1, 1, 3, 9), (0, 0, 2, 2)]
    sample = Sample(grey(0), "a", truth={"boxes": boxes})
    assert sample.truth["boxes"] == ((1, 1, 3, 4), (0, 0, 2, 2))
    np.testing.assert_array_equal(
        sample.truth["mask"], [[1, 1] + [0] * 4, [1, 1, 1] + [0] * 3] + [[0, 1, 1] + [0] * 3] * 2
    )
    mask = np.zeros((4, 6), dtype=int)
    own = Sample(grey(0), "a", truth={"boxes": boxes, "mask": mask})
    np.testing.assert_array_equal(own.truth["mask"], mask)


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"words": ("the", "film")}, "not those of the text"),
        ({"words": ()}, "not those of the text"),
        ({"truth": {"rationale": [1] * 4}}, "without words"),
        ({"words": WORDS, "truth": {"rationale": [1, 0, 1]}}, "3 numbers for 4 words"),
        ({"words": WORDS, "truth": {"rationale": [1, 0, float("nan"), 0]}}, "1 that are not fin"),
        ({"words": WORDS, "truth": {"rationale": "yes!"}}, "numbers for 4 words"),
        ({"words": WORDS, "truth": {"attention": [[1, 0, 1]]}}, "3 numbers for 4 words"),
        ({"words": WORDS, "truth": {"attention": [[1, 0, 0.5, 0]]}}, "marks a word, or does not"),
        ({"truth": {"boxes": [(0, 0, 1, 1)]}}, "size of their picture"),
        ({"input": grey(0), "truth": {"mask": np.zeros((6, 4))}}, "differ in size"),
        ({"input": grey(0), "truth": {"mask": np.full((4, 6), 2)}}, "mask of an object"),
        ({"input": grey(0), "truth": {"mask": np.full((4, 6), np.nan)}}, "mask of an object"),
        ({"input": grey(0), "truth": {"boxes": [(7, 0, 9, 2)]}}, "not a box in the picture"),
        ({"label": 1.5}, "not a label"),
    ],
)
def test_truth_that_does_not_fit_is_refused(given, fragment):
    with pytest.raises(pellucid.PellucidError, match=fragment):
        Sample(**{"input": TEXT, "id": "a", **given})


@pytest.mark.parametrize("value", [0, 1, -1])
def test_empty_and_full_masks_are_allowed(value):
    sample = Sample(grey(0), "a", truth={"mask": np.full((4, 6), value)})
    assert (sample.truth["mask"] == value).all()


def test_labels_of_any_library_are_plain():
    for label in (3, np.int64(3), torch.tensor(3)):
        assert type(Sample("a", "a", label=label).label) is int


def test_samples_and_data_sets_in_a_line():
    assert (
        repr(Sample("a fine film", "r1", label="good"))
        == "<sample 'r1': 'a fine film'; label 'good'>"
    )
    boxed = Sample(grey(0), "p", truth={"boxes": [(0, 0, 1, 1)]})
    assert repr(boxed) == "<sample 'p': 6 x 4 pixels; truth: boxes, mask>"
    assert repr(texts()) == "<samples: 20 texts; 3 labels (0, 1, 2)>"
    assert repr(data.of([boxed], "photos")) == "<photos: 1 image; truth: boxes, mask>"


# ---- data sets -----------------------------------------------------------------------------------


def test_a_data_set_is_a_sequence():
    found = texts()
    assert len(found) == 20
    assert found[3].input == "text 3"
    assert found[-1].id == "n19"
    assert [sample.id for sample in found[2:8:2]] == ["n2", "n4", "n6"]
    assert isinstance(found[2:8:2], Dataset)
    assert [sample.id for sample in found] == list(found.ids)
    assert found.labels == tuple(i % 3 for i in range(20))
    with pytest.raises(IndexError):
        found[20]


def test_plain_inputs_are_numbered():
    found = data.of(["a", ("b", "c")], "two")
    assert found.ids == ("0", "1")
    assert found[1].input == ("b", "c")
    assert found.kind == "text"
    assert data.of([grey(0)]).kind == "image"


def test_taking_the_first_and_drawing():
    found = texts()
    assert found.take(3).ids == ("n0", "n1", "n2")
    before = random.getstate(), torch.get_rng_state()
    drawn = found.take(7, seed=1)
    assert len(set(drawn.ids)) == 7
    assert drawn.ids == found.take(12, seed=1).ids[:7]
    assert drawn.ids != found.take(7, seed=2).ids
    assert (random.getstate(), torch.get_rng_state().tolist()) == (before[0], before[1].tolist())
    mixed = data.of([found[i] for i in (5, 3, 11, *range(12, 20), 4, *range(3), *range(6, 11))])
    assert mixed.take(7, seed=1).ids == drawn.ids, "the order decides"
    with pytest.raises(ArgumentError, match="at most 20"):
        found.take(21)


def test_a_draw_is_even():
    """Every sample is in about as many draws as any other."""
    found = texts(10)
    times = dict.fromkeys(found.ids, 0)
    for seed in range(2000):
        for one in found.take(3, seed=seed).ids:
            times[one] += 1
    # 600 expected, with a standard deviation of sqrt(2000 * 0.3 * 0.7) = 20.5
    assert all(abs(count - 600) < 5 * 20.5 for count in times.values())


def test_choosing_by_what_is_known():
    found = texts()
    assert found.where(label=1).labels == (1,) * 7
    assert found.split("train").ids == ("n0", "n4", "n8", "n12", "n16")
    assert found.where(split="train", label=lambda label: label > 0).ids == ("n4", "n8", "n16")
    with pytest.raises(ArgumentError, match=r"unknown fact .* 'splt': did you mean 'split'"):
        found.where(splt="test")
    with pytest.raises(ArgumentError, match="split: 'train', 'test'"):
        found.split("dev")


def test_other_names_for_labels():
    assert texts().relabel(["a", "b", "c"]).labels[:4] == ("a", "b", "c", "a")
    changed = texts().relabel({0: "x", 1: "x", 2: None})
    assert changed[2].label is None
    assert changed[1].label == "x"
    with pytest.raises(ArgumentError, match="left without a name\n  got:      2\n"):
        texts().relabel(["a", "b"])


def test_labels_that_a_model_does_not_have_are_found_before_work(tiny):
    model = tiny("bert")
    data.check_labels(data.of([Sample("a", "1", label=model.labels[0])]), model)
    data.check_labels(data.of([Sample("a", "1", label=1)]), model)
    wrong = [("good", 3), ("bad", 2), (99, 1), (None, 1), (0, 4)]
    samples = [Sample("a", f"{label}{i}", label=label) for label, n in wrong for i in range(n)]
    with pytest.raises(ArgumentError) as caught:
        data.check_labels(data.of(samples), model)
    counted = "'good' (3 samples), 'bad' (2 samples), 99 (1 samples), None (1 samples)"
    assert counted in str(caught.value)


def test_texts_are_not_taken_for_paths_of_images(tiny):
    with pytest.raises(ArgumentError, match="do not fit"):
        data.check_labels(data.of([Sample("/secret.png", "1", label=0)]), tiny("vit"))


def test_the_fingerprint_is_of_the_content():
    first = data.of([Sample("a", "1"), Sample("b", "2")], "one")
    assert first.fingerprint() == data.of([Sample("a", "1"), Sample("b", "2")], "two").fingerprint()
    assert first.fingerprint() == data.of([Sample("a", "1"), Sample("b", "2")]).fingerprint()
    others = [
        [Sample("a", "1")],
        [Sample("b", "2"), Sample("a", "1")],
        [Sample("a", "1"), Sample("b", "3")],
        [Sample("a", "1"), Sample("c", "2")],
        [Sample("a", "1"), Sample("b", "2", label=1)],
        [Sample("a", "1"), Sample("b", "2", truth={"own": 1})],
        [Sample("a", "12"), Sample("b", "")],
        [Sample(("a", "b"), "1"), Sample("b", "2")],
    ]
    found = {data.of(samples).fingerprint() for samples in others}
    assert len(found | {first.fingerprint()}) == len(others) + 1


def test_the_fingerprint_of_pictures_is_of_their_pixels(tmp_path):
    grey(7).save(tmp_path / "a.png")
    same = [grey(7), np.asarray(grey(7))]
    assert len({data.of([one]).fingerprint() for one in same}) == 1
    assert data.of([grey(8)]).fingerprint() != data.of([grey(7)]).fingerprint()
    before = data.of([tmp_path / "a.png"]).fingerprint()
    grey(8).save(tmp_path / "a.png")
    assert data.of([tmp_path / "a.png"]).fingerprint() != before


@pytest.mark.parametrize(
    ("inputs", "fragment"),
    [
        ([], "there is nothing in samples"),
        (["a", grey(0)], "mixes texts and images"),
        ([Sample("a", "1"), Sample("b", "1")], "share an id\n  got:      '1'"),
    ],
)
def test_what_is_no_data_set_is_refused(inputs, fragment):
    with pytest.raises(InputError, match=fragment):
        data.of(inputs)


# ---- folders -------------------------------------------------------------------------------------


def photos(root):
    for name, value in (("cat/1.png", 10), ("cat/2.jpg", 20), ("dog/deep/3.png", 30)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        grey(value).save(root / name)
    (root / "cat" / "notes.txt").write_text("no picture")
    (root / ".hidden").mkdir()
    grey(1).save(root / ".hidden" / "4.png")
    grey(1).save(root / "cat" / ".5.png")
    return root


def test_a_folder_of_classes(tmp_path):
    found = data.folder(photos(tmp_path / "photos"))
    assert found.ids == ("cat/1.png", "cat/2.jpg", "dog/deep/3.png")
    assert found.labels == ("cat", "cat", "dog")
    assert [sample.input.getpixel((0, 0))[0] for sample in found] == [10, 20, 30]
    assert repr(found) == "<photos: 3 images; 2 labels (cat, dog)>"


def test_a_folder_of_pictures_has_no_labels(tmp_path):
    grey(1).save(tmp_path / "a.png")
    assert data.folder(tmp_path).labels == (None,)


def test_pictures_are_decoded_when_they_are_asked_for(tmp_path):
    found = data.folder(photos(tmp_path / "photos"))
    (tmp_path / "photos/cat/1.png").write_bytes(b"broken")
    assert found[1].input.size == (6, 4)
    with pytest.raises(InputError, match=r"sample 'cat/1.png'[\s\S]*cannot be read as an image"):
        found[0]


def test_masks_of_a_folder(tmp_path):
    root = photos(tmp_path / "photos")
    trimap = np.array([[1, 1, 2, 2, 3, 3]] * 4, dtype=np.uint8)
    for name in ("cat/1.png", "cat/2.png", "dog/deep/3.png"):
        (tmp_path / "masks" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(trimap).save(tmp_path / "masks" / name)
    codes = {1: 1, 2: 0, 3: -1}
    found = data.folder(root, masks=tmp_path / "masks", codes=codes)
    assert found.truths == ("mask",)
    assert found[1].truth["mask"].tolist() == [[1, 1, 0, 0, -1, -1]] * 4
    with pytest.raises(InputError, match=r"no meaning[\s\S]*instead:  codes="):
        data.folder(root, masks=tmp_path / "masks")[0]
    before = found.fingerprint()
    Image.fromarray(trimap[:, ::-1].copy()).save(tmp_path / "masks/cat/2.png")
    assert found.fingerprint() != before
    (tmp_path / "masks/cat/2.png").unlink()
    with pytest.raises(InputError, match=r"no cat/2.png in"):
        data.folder(root, masks=tmp_path / "masks")


@pytest.mark.parametrize("inside", [1, 255])
@pytest.mark.parametrize("mode", ["L", "P", "1"])
def test_masks_of_two_values_need_no_codes(tmp_path, inside, mode):
    values = np.array([[0, 0, inside, inside, 0, 0]] * 4, dtype=np.uint8)
    picture = Image.fromarray(values)
    if mode == "P":
        picture.putpalette([5, 6, 7] * 256)
    if mode == "1":
        picture = Image.fromarray(values > 0)
    (tmp_path / "m").mkdir()
    (tmp_path / "p").mkdir()
    picture.save(tmp_path / "m" / "a.png")
    grey(0).save(tmp_path / "p" / "a.png")
    (sample,) = data.folder(tmp_path / "p", masks=tmp_path / "m")
    assert sample.truth["mask"].tolist() == [[0, 0, 1, 1, 0, 0]] * 4


def test_masks_in_colour_are_refused(tmp_path):
    for name in ("m", "p"):
        (tmp_path / name).mkdir()
        grey(0).save(tmp_path / name / "a.png")
    with pytest.raises(InputError, match="one channel"):
        data.folder(tmp_path / "p", masks=tmp_path / "m")[0]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_that_lead_out_are_refused(tmp_path, kind):
    root = photos(tmp_path / "photos")
    (tmp_path / "secret").mkdir()
    grey(99).save(tmp_path / "secret" / "s.png")
    target = tmp_path / "secret" / ("s.png" if kind == "file" else "")
    (root / "cat" / ("link.png" if kind == "file" else "link")).symlink_to(target)
    with pytest.raises(InputError, match="a link leads out of the folder"):
        data.folder(root)


def test_a_link_that_is_put_later_is_refused_when_it_is_read(tmp_path):
    found = data.folder(photos(tmp_path / "photos"))
    grey(99).save(tmp_path / "secret.png")
    (tmp_path / "photos/cat/1.png").unlink()
    (tmp_path / "photos/cat/1.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InputError, match="a link leads out of the folder"):
        found[0]
    with pytest.raises(InputError, match="a link leads out of the folder"):
        found.fingerprint()


def test_links_inside_are_no_danger(tmp_path):
    root = photos(tmp_path / "photos")
    (root / "cat" / "again.png").symlink_to(root / "cat" / "1.png")
    (root / "cat" / "loop").symlink_to(root)
    (tmp_path / "entrance").symlink_to(root)
    assert len(data.folder(tmp_path / "entrance")) == 4


def test_folders_without_pictures(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        data.folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="there is nothing in"):
        data.folder(tmp_path)


def test_huge_pictures_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid._images.MOST_PIXELS", 20)
    grey(1).save(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"sample 'a.png'[\s\S]*too large"):
        data.folder(tmp_path)[0]
    with pytest.raises(InputError, match="too large"):
        data.of([grey(1)])[0]


# ---- tables of texts -----------------------------------------------------------------------------


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "reviews.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_a_table_of_texts(tmp_path):
    path = written(tmp_path, 'text,mark,id\n"a fine, film",good,x\nbad,bad,y\n', "utf-8-sig")
    found = data.csv(path, text="text", label="mark", id="id")
    assert [sample.input for sample in found] == ["a fine, film", "bad"]
    assert (found.ids, found.labels, found.name) == (("x", "y"), ("good", "bad"), "reviews")
    assert data.csv(path, text="text").labels == (None, None)
    assert data.csv(path, text=("mark", "id"))[0].input == ("good", "x")


@pytest.mark.parametrize(
    ("written_labels", "labels"),
    [(["0", "12"], (0, 12)), (["0", "one"], ("0", "one")), (["-1", "1"], (-1, 1))],
)
def test_labels_are_names_unless_all_are_numbers(tmp_path, written_labels, labels):
    path = written(tmp_path, "t;l\n" + "".join(f"a;{label}\n" for label in written_labels))
    assert data.csv(path, text="t", label="l", delimiter=";").labels == labels


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("text,label\n", "nothing in reviews.csv"),
        ("", r"unknown column of reviews.csv: 'text'"),
        ("txt,label\na,b\n", "unknown column of reviews.csv: 'text': did you mean 'txt'"),
        ("text,label\na,b,c\n", "line 2"),
        ("text,label\na,b\n\nc\n", "line 4"),
        ('text,label\n"a,b\n', "cannot be read"),
        ("text,label\n" + "a" * 200_000 + ",b\n", "cannot be read"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, fragment):
    with pytest.raises(pellucid.PellucidError, match=fragment):
        data.csv(written(tmp_path, text), text="text", label="label")


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        data.csv(tmp_path / "nowhere.csv", text="text")
    with pytest.raises(InputError, match="cannot be read"):
        data.csv(written(tmp_path, "text\nd\xe9j\xe0\n", "latin-1"), text="text")
    with pytest.raises(InputError, match="cannot be read"):
        data.csv(written(tmp_path, "text\na\n"), text="text", delimiter="--")


# ---- parquet -------------------------------------------------------------------------------------


def encoded(image):
    import io

    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def table(tmp_path):
    """Writes columns to a parquet file."""
    pyarrow = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet files need pyarrow")

    def write(**columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "table.parquet")
        return tmp_path / "table.parquet"

    return write


def test_a_table_of_pictures_and_masks(table):
    trimap = Image.fromarray(np.array([[1, 1, 2, 2, 3, 3]] * 4, dtype=np.uint8))
    path = table(
        id=["a", "b"],
        breed=[5, 0],
        species=[1, 0],
        split=["train", "test"],
        image=[encoded(grey(50)), encoded(grey(60))],
        trimap=[encoded(trimap)] * 2,
    )
    found = data.pets(path)
    assert repr(found) == "<table: 2 images; 2 labels (5, 0); truth: mask>"
    sample = found.split("test")[0]
    assert (sample.id, sample.label, sample.about["species"]) == ("b", 0, 0)
    assert sample.input.getpixel((0, 0)) == (60, 60, 60)
    assert sample.truth["mask"].tolist() == [[1, 1, 0, 0, -1, -1]] * 4
    assert found.fingerprint() == data.pets(path).fingerprint()
    assert found.fingerprint() != found[:1].fingerprint()
    others = data.parquet(path, input="image", mask="trimap", label="breed", id="id", codes={1: 1})
    assert found.fingerprint() != others.fingerprint()


def test_empty_cells_are_named(table):
    path = table(text=["a", None], id=["first", "second"])
    found = data.parquet(path, input="text", id="id")
    with pytest.raises(InputError, match="sample 'second': a cell is empty"):
        found[1]


def test_rationales_of_words(table):
    path = table(
        id=["a", "b"],
        split=["train", "test"],
        tokens=[list(WORDS), ["march 4", "ok"]],
        label=[0, 1],
        rationales=[[[0, 1, 1, 0], [0, 0, 1, 0]], []],
    )
    first, second = data.hatexplain(path)
    assert first.input == TEXT
    assert first.label == "hatespeech"
    assert first.truth["rationale"] == (0, 0.5, 1, 0)
    assert second.truth["rationale"] == (0, 0)
    assert [second.input[a:b] for a, b in second.spans] == ["march 4", "ok"]


def test_maps_of_attention(table):
    path = table(
        part=["part1"], label=[1], words=[list(WORDS)], maps=[[[0, 1, 1, 0], [0, 0, 1, 1]]]
    )
    (sample,) = data.yelp_hat(path)
    assert sample.truth["attention"] == ((0, 1, 1, 0), (0, 0, 1, 1))
    assert (sample.label, sample.about) == ("positive", {"part": "part1"})


def test_mentions_are_characters_of_the_text(table):
    path = table(
        kind=["pro"], type=[1], split=["dev"], sentence=["[The nurse] left [the room] as [she]."]
    )
    (sample,) = data.winobias(path)
    assert sample.input == "The nurse left the room as she."
    found = [sample.input[a:b] for a, b in sample.about["mentions"]]
    assert found == ["The nurse", "the room", "she"]


@pytest.mark.parametrize("reader", ["sentence_polarity", "imdb"])
def test_texts_with_labels(table, reader):
    path = table(text=["good", "bad"], label=[1, 0])
    found = getattr(data, reader)(path)
    assert [sample.input for sample in found] == ["good", "bad"]
    assert found.labels == ("positive", "negative")


def test_boxes_of_a_table(table):
    path = table(image=[encoded(grey(0))], boxes=[[[1, 1, 3, 3]]])
    (sample,) = data.parquet(path, input="image", boxes="boxes")
    assert sample.truth["mask"].sum() == 4


@pytest.mark.parametrize(
    ("given", "fragment"),
    [
        ({"input": "txt"}, "unknown column of table.parquet: 'txt': did you mean 'text'"),
        ({"input": "text", "label": "mark"}, r"'mark'[\s\S]*one of: text, tokens, twice"),
        ({"input": "text", "mask": "outline"}, "unknown column of table.parquet: 'outline'"),
        ({"input": "text", "lable": "text"}, "unknown argument 'lable': did you mean 'label'"),
        ({}, "one argument says where the inputs are"),
        ({"input": "text", "words": "tokens"}, "one argument says"),
        ({"input": "text", "rationale": "tokens"}, "rationale is said of words"),
        ({"input": "text", "id": "twice"}, "share an id"),
    ],
)
def test_columns_that_are_not_there(table, given, fragment):
    path = table(text=["a", "b"], tokens=[["a"], ["b"]], twice=["x", "x"])
    with pytest.raises(pellucid.PellucidError, match=fragment):
        data.parquet(path, **given)


def test_a_bad_row_is_named(table):
    path = table(tokens=[["a"], ["b"]], rationale=[[1], [1, 0]], id=["first", "second"])
    found = data.parquet(path, words="tokens", rationale="rationale", id="id")
    assert found[0].truth["rationale"] == (1,)
    with pytest.raises(InputError, match=r"sample 'second'[\s\S]*2 numbers for 1 words"):
        found[1]


def test_files_that_are_not_parquet(tmp_path, table):
    (tmp_path / "no.parquet").write_text("text")
    for path in (tmp_path / "no.parquet", tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match="cannot be read as a parquet file"):
            data.parquet(path, input="text")
    with pytest.raises(InputError, match="nothing in table"):
        data.parquet(table(text=[]), input="text")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ArgumentError, match=r"pip install 'pellucid\[data\]'"):
        data.parquet(tmp_path / "a.parquet", input="text")


# ---- Hugging Face data sets ----------------------------------------------------------------------


class Rows:
    """What `datasets.Dataset` looks like; counts how often a whole row is decoded."""

    class Feature:
        names = ("cat", "dog")

    def __init__(self, **columns):
        self.columns, self.column_names, self.rows_read = columns, list(columns), 0
        self.features = {"label": self.Feature()}

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        self.rows_read += 1
        return {name: column[key] for name, column in self.columns.items()}


def test_rows_of_a_library():
    mask = Image.fromarray(np.array([[0, 255, 255, 0, 0, 0]] * 4, dtype=np.uint8))
    rows = Rows(image=[grey(i) for i in (10, 20, 30)], label=[1, 0, 1], outline=[mask] * 3)
    found = data.from_datasets(rows, input="image", label="label", mask="outline", name="pets")
    assert rows.rows_read <= 1, "all rows were decoded"
    assert found.labels == ("dog", "cat", "dog")
    assert found[1].input.getpixel((0, 0))[0] == 20
    assert found[1].truth["mask"].tolist() == [[0, 1, 1, 0, 0, 0]] * 4
    assert repr(found) == "<pets: 3 images; 2 labels (dog, cat); truth: mask>"


def test_only_bytes_of_a_table_are_read(tmp_path):
    """A path in a table is where an image was, and leads anywhere."""
    grey(1).save(tmp_path / "secret.png")
    path = str(tmp_path / "secret.png")
    good = Rows(image=[{"bytes": encoded(grey(9)), "path": path}])
    assert data.from_datasets(good, input="image")[0].input.getpixel((0, 0))[0] == 9
    bad = Rows(image=[{"bytes": None, "path": path}])
    with pytest.raises(InputError, match="only where it was"):
        data.from_datasets(bad, input="image")


def test_several_splits_are_not_one_table():
    class Splits(dict):
        column_names = {"train": ["text"]}

    with pytest.raises(ArgumentError, match=r"load_dataset\(...\)\['test'\]"):
        data.from_datasets(Splits(), input="text")
    with pytest.raises(ArgumentError, match="not one table"):
        data.from_datasets([{"text": "a"}], input="text")
    with pytest.raises(ArgumentError, match="unknown column of dataset: 'txt'"):
        data.from_datasets(Rows(text=["a"]), input="txt")


def test_the_library_itself():
    datasets = pytest.importorskip("datasets", reason="compared where datasets is installed")
    features = datasets.Features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["no", "yes"])
    )
    rows = datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    found = data.from_datasets(rows, input="text", label="label")
    assert found.labels == ("yes", "no")
    assert [sample.input for sample in found] == ["a", "b"]
