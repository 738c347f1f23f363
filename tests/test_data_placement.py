"""Images, masks, boxes and maps move together, there and back."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

import pellucid
from pellucid import Resize, data
from pellucid.adapters.image import ImageReader, ProcessorView
from pellucid.data.placement import placement


class Letterbox:
    """All of the image, scaled to fit, on a ground of some brightness."""

    channels, mean, std = 3, (0.5,) * 3, (0.5,) * 3

    def __init__(self, size, ground):
        self.size, self.ground = size, ground

    def view(self, image):
        height, width = self.size
        scale = min(height / image.height, width / image.width)
        small = image.resize((round(image.width * scale), round(image.height * scale)))
        page = Image.new("RGB", (width, height), (self.ground,) * 3)
        page.paste(small, ((width - small.width) // 2, (height - small.height) // 2))
        return np.asarray(page)


CROP = {"fit": "crop", "crop_fraction": 0.875, "interpolation": "bicubic"}  # as timm's
RESIZES = {
    "stretched": Resize((32, 48)),
    "enlarged": Resize((200, 160), interpolation="bicubic"),
    "cropped": Resize((32, 32), fit="crop"),
    "cropped as by timm": Resize((64, 48), **CROP),
    "grey": Resize((30, 30), mean=(0.5,), std=(0.5,)),
}
CLIP = transformers.CLIPImageProcessorPil(
    size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32}
)
OTHERS = {
    "clip": ProcessorView(CLIP, 3),
    "on black": Letterbox((48, 40), 0),
    "on grey": Letterbox((48, 40), 127),
    "on white": Letterbox((48, 40), 255),
}
FOUND = 0.15  # pixels (of the view, or of the image where that is coarser) to which views are found
SIZES = [(40, 60), (97, 31), (31, 97), (300, 400), (12, 9)]


def by_arithmetic(resize, size):
    """How `Resize` is defined: (scale, offset) by axis."""
    if resize.fit == "stretch":
        return [(old / new, 0.0) for old, new in zip(size, resize.size, strict=True)]
    factor = max(resize.size) / resize.crop_fraction / min(size)
    large = [max(new, round(old * factor)) for old, new in zip(size, resize.size, strict=True)]
    return [
        (old / big, (big - new) // 2 * old / big)
        for old, new, big in zip(size, resize.size, large, strict=True)
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RESIZES)
def test_the_view_is_where_it_was_cut(name, size):
    found = placement(RESIZES[name], size)
    for axis, (scale, offset) in zip(found, by_arithmetic(RESIZES[name], size), strict=True):
        for edge in (0, axis.length):
            error = (axis.scale - scale) * edge + axis.offset - offset
            assert abs(error) < FOUND * max(1, scale)


@pytest.mark.parametrize("name", ["on black", "on grey", "on white"])
@pytest.mark.parametrize("size", SIZES)
def test_padding_is_not_the_image(name, size):
    for axis, old, new in zip(placement(OTHERS[name], size), size, (48, 40), strict=True):
        own = round(old * min(48 / size[0], 40 / size[1]))
        start = (new - own) // 2
        assert axis.scale * start + axis.offset == pytest.approx(0, abs=FOUND * max(1, axis.scale))
        end = axis.scale * (start + own) + axis.offset
        assert end == pytest.approx(old, abs=FOUND * max(1, axis.scale))


def test_what_is_no_resizing_is_refused():
    class Turned(Letterbox):
        def view(self, image):
            return np.asarray(image.rotate(45).resize((40, 48)))

    class Empty(Letterbox):
        def view(self, image):
            return np.zeros((48, 40, 3), dtype=np.uint8)

    for one in (Turned((48, 40), 0), Empty((48, 40), 0)):
        with pytest.raises(pellucid.UnsupportedCombination, match="cannot be told"):
            placement(one, (60, 60))


# ---- boxes ---------------------------------------------------------------------------------------


def adapted(preprocessing):
    """A model of images that sees them so."""

    def function(images):
        return np.zeros((len(images), 2))

    found = pellucid.blackbox(function, kind="image", labels=["a", "b"], size=(8, 8))
    found._form = replace(found._form, reader=ImageReader(preprocessing))
    return found


MODELS = {name: adapted(one) for name, one in {**RESIZES, **OTHERS}.items()}


@given(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(SIZES),
    st.tuples(*[st.floats(0, 1)] * 4),
)
def test_a_box_moves_as_its_filled_rectangle_does(name, size, shares):
    """Its corners are those of the moved mask to the rounding of pixels, if it has some of both.

    (What is thinner than a filter has no edges to compare.)
    """
    height, width = size
    left, right = sorted(int(share * width) for share in shares[:2])
    top, bottom = sorted(int(share * height) for share in shares[2:])
    assume(right - left >= 3 and bottom - top >= 3)
    drawn = np.zeros(size, dtype=int)
    drawn[top:bottom, left:right] = 1
    box = (left, top, right, bottom)
    np.testing.assert_array_equal(data.boxes_to_mask([box], size), drawn)
    mask = data.move_mask(MODELS[name], drawn) == 1
    (moved,) = data.move_boxes(MODELS[name], [box], size)
    if moved is None:
        assert not mask.any()
        return
    assume(min(moved[2] - moved[0], moved[3] - moved[1]) >= 3)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    bounds = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    assert moved == pytest.approx(bounds, abs=0.5 + FOUND)


def test_boxes_that_are_cropped_away():
    model = MODELS["cropped"]  # sees the middle third of a picture of 30 x 90
    found = data.move_boxes(model, [(0, 0, 20, 30), (0, 0, 45, 30), (30, 0, 60, 30)], (30, 90))
    assert found[0] is None
    assert found[1] == pytest.approx((0, 0, 16, 32), abs=0.1)
    assert found[2] == pytest.approx((0, 0, 32, 32), abs=0.1)


def test_masks_keep_what_is_not_counted_and_padding_is_not_counted():
    mask = np.zeros((40, 80), dtype=int)
    mask[:, :40], mask[:, 60:] = 1, -1
    seen = data.move_mask(adapted(Letterbox((40, 40), 255)), mask)
    expected = np.full((40, 40), -1)
    expected[10:30, :20], expected[10:30, 20:30] = 1, 0
    np.testing.assert_array_equal(seen, expected)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_masks_of_one_value_stay_so(value):
    seen = data.move_mask(MODELS["cropped as by timm"], np.full((50, 40), value))
    assert (seen == value).all()


@pytest.mark.parametrize(
    ("box", "mask"),
    [
        ((1.9, 0, 3.9, 1), [[0, 1, 1, 0]] + [[0] * 4] * 2),  # edges are cut down
        ((-5, -5, 2, 1), [[1, 1, 0, 0]] + [[0] * 4] * 2),  # clipped
        ((3, 2, 99, 99), [[0] * 4] * 2 + [[0, 0, 0, 1]]),
        ((1, 1, 1, 3), [[0] * 4] * 3),  # of no area
        (np.array([0.0, 0.0, 4.0, 3.0]), [[1] * 4] * 3),
    ],
)
def test_masks_of_boxes_by_hand(box, mask):
    assert data.boxes_to_mask([box], (3, 4)).tolist() == mask


def test_boxes_that_overlap_are_counted_once():
    assert data.boxes_to_mask([(0, 0, 2, 2), (1, 1, 3, 3)], (3, 3)).sum() == 7
    assert data.boxes_to_mask([], (3, 3)).sum() == 0


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 2),
        (2, 0, 1, 3),
        (4, 0, 6, 3),
        (-3, 0, 0, 3),
        (0, 0, float("nan"), 3),
        "0 0 2 3",
        (0, 0, "2", 3),
        7,
    ],
)
def test_what_is_no_box_in_the_picture_is_refused(box):
    with pytest.raises(pellucid.InputError, match="not a box in the picture"):
        data.boxes_to_mask([box], (3, 4))


# ---- maps ----------------------------------------------------------------------------------------


def picture(size, seed=0):
    """A picture in which every place is different."""
    noise = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    return Image.fromarray(noise)


def with_map(model, image, scores):
    found = pellucid.explain(model, image, method="random")
    return replace(found, scores=torch.as_tensor(scores, dtype=torch.float64))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(40, 60), (97, 31), (300, 400)])
def test_a_map_comes_back_within_a_pixel(name, size):
    """What lies in the middle of the picture goes into the view and returns to where it was."""
    height, width = size
    box = (width // 3, 3 * height // 8, 2 * width // 3, 5 * height // 8)
    mask = data.boxes_to_mask([box], size)
    model, image = MODELS[name], picture(size)
    seen = data.move_mask(model, mask) == 1
    back = data.to_original(model, with_map(model, image, seen), image)
    assert back.shape == size
    rows, columns = placement(model.reader.preprocessing, size)
    inside = (back > 0.5).numpy()
    found_x, found_y = np.flatnonzero(inside.any(axis=0)), np.flatnonzero(inside.any(axis=1))
    assert (found_x[0], found_x[-1] + 1) == pytest.approx(box[::2], abs=max(1, columns.scale))
    assert (found_y[0], found_y[-1] + 1) == pytest.approx(box[1::2], abs=max(1, rows.scale))


def test_what_the_model_did_not_see_gets_zero():
    model, image = MODELS["cropped"], picture((30, 90))
    back = data.to_original(model, with_map(model, image, torch.ones(32, 32)), image)
    expected = torch.zeros(30, 90, dtype=torch.float64)
    expected[:, 30:60] = 1
    assert torch.equal(back, expected)


def test_a_slope_comes_back_as_a_slope():
    model, image = MODELS["stretched"], picture((64, 96))  # two pixels of it are one of the view
    across = torch.arange(48.0)[None].expand(32, 48) + 0.5
    back = data.to_original(model, with_map(model, image, across), image)
    expected = (torch.arange(96.0, dtype=torch.float64) + 0.5) / 2
    torch.testing.assert_close(back[5, 2:-2], expected[2:-2], atol=0.02, rtol=0)


def test_patches_of_a_vision_transformer(tiny):
    model = tiny("vit")
    image = picture((64, 96))
    found = pellucid.explain(model, image, method="gradient_x_input", target=1)
    back = data.to_original(model, found, image)
    assert back.shape == (64, 96)
    view = found.map()
    assert view.shape == (32, 48)  # half the size
    larger = torch.nn.functional.interpolate(view[None, None], (64, 96), mode="bilinear")[0, 0]
    spread = float(view.max() - view.min())
    torch.testing.assert_close(back, larger, atol=0.01 * spread, rtol=0)


def test_other_images_and_models_are_refused(tiny):
    model, image = MODELS["cropped"], picture((30, 90))
    found = with_map(model, image, torch.ones(32, 32))
    with pytest.raises(pellucid.ArgumentError, match="not of this image"):
        data.to_original(model, found, picture((30, 90), seed=1))
    with pytest.raises(pellucid.ArgumentError, match="not of this image"):
        data.to_original(MODELS["grey"], found, image)
    text = pellucid.explain(tiny("bert"), "fine", method="random")
    with pytest.raises(pellucid.ArgumentError, match="not of this image"):
        data.to_original(model, text, image)
    with pytest.raises(pellucid.ArgumentError, match="which reads texts"):
        data.move_mask(tiny("bert"), np.zeros((3, 3)))
