"""Images: the same picture in any form gives the same pixels, and those the processor's own."""

import gc
import io
import struct
import warnings
import zlib

import numpy as np
import pytest
import torch
import transformers
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

import pellucid
from pellucid import InputError, Resize
from pellucid._images import read_image
from pellucid.adapters.image import ImageReader, ProcessorView

CPU = torch.device("cpu")
RGB = np.random.default_rng(0).integers(0, 256, (12, 17, 3), dtype=np.uint8)
GREY = RGB[..., 0]


def read(raw, channels=3):
    return np.asarray(read_image(raw, channels)[0])


def notes(raw):
    return " ".join(read_image(raw)[1])


def encoded(image, format="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format=format, **options)
    return buffer.getvalue()


def png(width, height, rows=b"", extra=b""):
    """A grey PNG with this header, whatever its rows are."""

    def chunk(kind, data):
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


# ---- one picture, many forms ---------------------------------------------------------------------


FORMS = {
    "path": lambda path: path,
    "str": str,
    "bytes": lambda path: path.read_bytes(),
    "PIL": lambda _: Image.fromarray(RGB),
    "lazy PIL": Image.open,
    "array": lambda _: RGB,
    "strided array": lambda _: np.ascontiguousarray(RGB[::-1])[::-1],
    "float32 array": lambda _: (RGB / 255).astype(np.float32),
    "float64 array": lambda _: RGB / 255,
    "uint16 array": lambda _: RGB.astype(np.uint16) * 257,
    "tensor c h w": lambda _: torch.tensor(RGB.transpose(2, 0, 1)),
    "tensor h w c": lambda _: torch.tensor(RGB),
    "float tensor": lambda _: torch.tensor(RGB.transpose(2, 0, 1) / 255).requires_grad_(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pixels(form, tmp_path):
    path = tmp_path / "picture.png"
    Image.fromarray(RGB).save(path)
    raw = FORMS[form](path)
    np.testing.assert_array_equal(read(raw), RGB)
    assert not notes(raw)


def test_bfloat16_tensors_are_read_to_their_own_precision():
    raw = torch.from_numpy(RGB.transpose(2, 0, 1) / 255).to(torch.bfloat16)
    gap = read(raw).astype(int) - RGB.astype(int)
    assert np.abs(gap).max() <= 1  # 8 bits of mantissa


@pytest.mark.parametrize(
    "raw",
    [GREY, GREY[..., None], torch.from_numpy(GREY)[None], Image.fromarray(GREY), GREY / 255],
    ids=["h w", "h w 1", "1 h w", "PIL L", "floats"],
)
def test_grey_stays_grey_in_one_channel_and_three(raw):
    np.testing.assert_array_equal(read(raw, 1), GREY)
    np.testing.assert_array_equal(read(raw, 3), np.repeat(GREY[..., None], 3, axis=2))


def test_colour_for_a_grey_model_is_its_luma():
    """ITU-R 601: 0.299 R + 0.587 G + 0.114 B."""
    luma = RGB @ np.array([0.299, 0.587, 0.114])
    assert np.abs(read(RGB, 1) - luma).max() <= 1


def test_one_bit_is_black_and_white():
    bits = Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).convert("1")
    for raw in (bits, encoded(bits)):
        np.testing.assert_array_equal(read(raw, 1), [[0, 255], [255, 0]])


def test_cmyk():
    """Without ink white, with all cyan 0 red, with all black black."""
    ink = np.zeros((2, 2, 4), np.uint8)
    ink[0, 1], ink[1, 0] = (255, 0, 0, 0), (0, 0, 0, 255)
    expected = [[[255, 255, 255], [0, 255, 255]], [[0, 0, 0], [255, 255, 255]]]
    np.testing.assert_array_equal(read(Image.fromarray(ink, "CMYK")), expected)


def test_laboratory_colours_are_read_or_refused():
    """Pillow opens CIELAB TIFFs but does not convert them by `convert`."""
    lab = ImageCms.createProfile("LAB")
    there = ImageCms.buildTransform(ImageCms.createProfile("sRGB"), lab, "RGB", "LAB")
    image = ImageCms.applyTransform(Image.fromarray(RGB), there)
    try:
        gap = read(image).astype(int) - RGB
    except InputError:
        return
    assert np.abs(gap).max() < 40


# ---- transparency --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["array", "tensor", "PNG", "LA", "palette", "1-colour key"])
def test_transparency_is_laid_on_white_and_noted(form):
    """c a + 255 (1 - a), by hand: black at alpha 0, 51 and 255 becomes 255, 204 and 0."""
    alpha = np.array([[0, 51, 255, 255]] * 2, np.uint8)
    rgba = np.dstack([np.zeros((2, 4, 3), np.uint8), alpha])
    image = Image.fromarray(rgba)
    expected = np.array([[255, 204, 0, 0]] * 2)
    if form in ("palette", "1-colour key"):
        image = Image.fromarray(np.array([[1, 0, 0, 0]] * 2, np.uint8))
        expected = np.array([[255, 0, 0, 0]] * 2)
        if form == "palette":
            image = image.convert("P")
            image.putpalette([0, 0, 0, 0, 0, 200])
    forms = {
        "array": lambda: rgba,
        "tensor": lambda: torch.tensor(rgba.transpose(2, 0, 1)),
        "PNG": lambda: encoded(Image.fromarray(rgba)),
        "LA": lambda: Image.fromarray(rgba).convert("LA"),
    }
    raw = forms[form]() if form in forms else encoded(image, transparency=1)
    np.testing.assert_array_equal(read(raw), np.repeat(expected[..., None], 3, axis=2))
    assert "white" in notes(raw)


def test_an_opaque_alpha_channel_is_not_worth_a_note():
    raw = np.dstack([RGB, np.full_like(GREY, 255)])
    np.testing.assert_array_equal(read(raw), RGB)
    assert not notes(raw)


def test_the_note_reaches_the_explanation(digits):
    faint = np.full((28, 28, 4), 100, np.uint8)
    found = pellucid.explain(digits, faint, method="random")
    assert any("white" in note for note in found.notes)


# ---- more than eight bits ------------------------------------------------------------------------

DEEP = np.array([[0, 128, 257, 300], [1000, 30000, 65400, 65535]], np.uint16)
SHALLOW = [[0, 0, 1, 1], [4, 117, 254, 255]]  # v / 257, rounded


@pytest.mark.parametrize("form", ["PNG", "PIL", "array", "TIFF"])
def test_sixteen_bits_are_scaled_alike_in_every_form(form):
    image = Image.fromarray(DEEP)
    assert image.mode.startswith("I;16")
    raw = {"PIL": image, "array": DEEP}.get(form)
    raw = encoded(image, form) if raw is None else raw
    np.testing.assert_array_equal(read(raw, 1), SHALLOW)


def test_sixteen_bits_are_noted():
    assert "16-bit" in notes(Image.fromarray(DEEP))


def test_a_dark_picture_of_sixteen_bits_stays_dark():
    assert read(encoded(Image.fromarray(np.full((4, 4), 200, np.uint16))), 1).max() <= 1


def test_float_pictures_follow_the_rule_of_float_arrays():
    """From 0 to 1, as in a scientific TIFF."""
    values = (GREY / 255).astype(np.float32)
    np.testing.assert_array_equal(read(encoded(Image.fromarray(values), "TIFF"), 1), GREY)


# ---- orientation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["file", "PIL"])
def test_a_photograph_stands_upright(orientation, form):
    """As every viewer and transformers' own image loading turn it, by its EXIF tag."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(RGB), exif=exif)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    raw = data if form == "file" else Image.open(io.BytesIO(data))
    np.testing.assert_array_equal(read(raw), upright)


def test_an_animation_is_its_first_frame():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(read(data)[0, 0], [255, 0, 0])


# ---- what is not an image ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "got"),
    [
        (None, "NoneType"),
        (7, "int"),
        ({"pixels": 1}, "dict"),
        (np.zeros(5, np.uint8), "(5,)"),
        (np.zeros((4, 4, 2), np.uint8), "(4, 4, 2)"),
        (np.zeros((1, 3, 8, 8), np.uint8), "(1, 3, 8, 8)"),
        (torch.zeros(1, 3, 8, 8), "(1, 3, 8, 8)"),
        (np.zeros((0, 8, 3), np.uint8), "0"),
        (np.full((4, 4), np.nan), "nan"),
        (np.full((4, 4), np.inf), "inf"),
        (np.linspace(-1, 1, 16).reshape(4, 4), "-1.0 to 1.0"),
        (np.full((4, 4), 128.0), "128.0"),
        (np.zeros((4, 4), np.int64), "int64"),
        (np.zeros((4, 4), complex), "complex"),
        (np.full((4, 4), "x"), "dtype"),
        (np.zeros((1, 1), np.uint8), "1 x 1"),
        (np.zeros((1, 9), np.uint8), "9 x 1"),
        (Image.new("RGB", (1, 1)), "1 x 1"),
        (Image.fromarray(np.full((4, 4), np.nan, np.float32)), "nan"),
        (b"", "bytes"),
        (b"not an image", "bytes"),
        (png(4, 4)[:40], "bytes"),
        (png(4, 4), "bytes"),  # a header without rows
        ("\0.png", ".png"),
        ("no/such/file.png", "no/such/file.png"),
        ("A fine film, and a moving one. " * 20, "A fine film"),  # a text for a model of images
    ],
)
def test_what_is_not_an_image_is_refused(raw, got):
    with pytest.raises(InputError) as caught:
        read_image(raw)
    assert f"got:      {got}" in str(caught.value) or got in str(caught.value).split("got:")[1]
    assert "expected:" in str(caught.value)


@pytest.mark.parametrize("kind", ["text", "empty", "half", "directory", "svg"])
def test_files_that_are_not_images(kind, tmp_path):
    path = tmp_path / "photo.png"
    whole = encoded(Image.fromarray(np.tile(RGB, (20, 20, 1))))
    if kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(
            {"text": b"dear diary", "empty": b"", "half": whole[: len(whole) // 2]}.get(
                kind, b"<svg xmlns='http://www.w3.org/2000/svg'/>"
            )
        )
    with pytest.raises(InputError, match=r"photo\.png") as caught:
        read_image(path)
    assert "instead:" in str(caught.value)


def test_a_damaged_image_that_was_opened_by_the_user():
    whole = encoded(Image.fromarray(np.tile(RGB, (20, 20, 1))))
    lazy = Image.open(io.BytesIO(whole[: len(whole) // 2]))
    with pytest.raises(InputError):
        read_image(lazy)


def test_only_formats_of_pixels_are_opened(monkeypatch):
    """Pillow hands PostScript to an interpreter; a picture from anywhere must not start one."""
    from PIL import EpsImagePlugin

    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *a, **k: started.append(a))
    page = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    with pytest.raises(InputError):
        read_image(page)
    assert not started


# ---- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(10_000, 5_001), (10_000, 10_000), (60_000, 60_000)])
@pytest.mark.parametrize("form", ["bytes", "path", "lazy PIL"])
def test_huge_images_are_refused_by_their_header(width, height, form, tmp_path, monkeypatch):
    """Some 100 bytes that promise more than 50 megapixels; nothing is decoded, nothing warned."""
    data = png(width, height)
    path = tmp_path / "huge.png"
    path.write_bytes(data)
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda _: pytest.fail("decoded"))
    raw = {"bytes": data, "path": path}.get(form)
    if raw is None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
        raw = Image.open(io.BytesIO(data))
        monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            read_image(raw)
    message = str(caught.value)
    del raw, caught
    gc.collect()  # a file left open would be told here
    assert "too large" in message
    assert "50 megapixels" in message
    assert "instead:" in message
    assert str(width) in message
    assert str(height) in message


def test_fifty_megapixels_are_allowed():
    image = Image.new("1", (10_000, 5_000))
    assert read_image(image, 1)[0].size == (10_000, 5_000)


def test_a_small_header_with_too_much_behind_it():
    """Rows that inflate to 64 MB behind a header of 4 x 4: read as 4 x 4, or refused."""
    bomb = png(4, 4, b"\0" * (1 << 26))
    assert len(bomb) < 100_000
    assert read(bomb, 1).shape == (4, 4)


def test_a_text_chunk_that_explodes():
    text = b"Comment\0\0" + zlib.compress(b"a" * (1 << 26))
    kind = b"zTXt"
    chunk = struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))
    with pytest.raises(InputError):
        read_image(png(4, 4, b"\0" * 20, chunk))


# ---- the view and the normalisation are the processor's own --------------------------------------

PROCESSORS = {
    "vit": lambda: transformers.ViTImageProcessorPil(size={"height": 24, "width": 32}),
    "vit, own statistics": lambda: transformers.ViTImageProcessorPil(
        size={"height": 24, "width": 32},
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    ),
    "not normalised": lambda: transformers.ViTImageProcessorPil(
        size={"height": 24, "width": 32}, do_normalize=False
    ),
    "not rescaled": lambda: transformers.ViTImageProcessorPil(
        size={"height": 24, "width": 32},
        do_rescale=False,
        image_mean=[120.0] * 3,
        image_std=[60.0] * 3,
    ),
    "neither": lambda: transformers.ViTImageProcessorPil(
        size={"height": 24, "width": 32}, do_rescale=False, do_normalize=False
    ),
    "other factor": lambda: transformers.ViTImageProcessorPil(
        size={"height": 24, "width": 32}, rescale_factor=1 / 127.5
    ),
    "not resized": lambda: transformers.ViTImageProcessorPil(do_resize=False),
    "clip": lambda: transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ),
    "deit": lambda: transformers.DeiTImageProcessorPil(
        size={"height": 40, "width": 40}, crop_size={"height": 32, "width": 32}
    ),
    "beit": lambda: transformers.BeitImageProcessorPil(
        size={"height": 32, "width": 32}, crop_size={"height": 32, "width": 32}
    ),
    "bit, as dinov2": lambda: transformers.BitImageProcessorPil(
        size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32}
    ),
}


@pytest.mark.parametrize("size", [(53, 71), (71, 53), (24, 32), (9, 9)])
@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_are_those_of_the_processor(name, size):
    processor = PROCESSORS[name]()
    if "height" not in (processor.size or {}) and name == "clip" and size == (24, 32):
        size = (25, 33)
    image = Image.fromarray(np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8))
    expected = processor(image, return_tensors="np")["pixel_values"]
    reader = ImageReader(ProcessorView(processor, 3))
    batch = reader.batch([reader.read(image)], CPU, torch.float64)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(batch.inputs["pixel_values"], expected, atol=1e-6 * scale)
    assert batch.items[0].view.shape == (*expected.shape[2:], 3)


def test_the_grey_model_reads_what_its_processor_makes(digits):
    processor = digits.reader.preprocessing.processor
    for path in pellucid.models.sample_images():
        expected = processor(Image.open(path).convert("L"), return_tensors="pt")["pixel_values"]
        found = digits.reader.batch([digits.reader.read(path)], CPU, torch.float32).inputs[
            "pixel_values"
        ]
        assert found.shape == (1, 1, 28, 28)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_what_is_stored_is_what_the_model_reads(digits):
    path = pellucid.models.sample_images()[0]
    explanation = pellucid.explain(digits, path, method="random")
    again = digits.batch([explanation.item], pellucid.Target.predicted())
    first = digits.encode([path], pellucid.Target.predicted())
    assert torch.equal(again.inputs["pixel_values"], first.inputs["pixel_values"])
    view = torch.from_numpy(explanation.item.view.copy()).double().permute(2, 0, 1)
    torch.testing.assert_close(again.inputs["pixel_values"][0].double(), (view / 255 - 0.5) / 0.5)


# ---- preprocessing by hand -----------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["stretch", "crop"])
@pytest.mark.parametrize("size", [(24, 32), (32, 24), (7, 7)])
@pytest.mark.parametrize("source", [(50, 60), (60, 50), (9, 200), (2, 2)])
def test_resize_gives_the_size_asked_for(fit, size, source):
    image = Image.new("RGB", source[::-1], "red")
    for fraction in (1.0, 0.875):
        view = Resize(size, fit=fit, crop_fraction=fraction).view(image)
        assert view.shape == (*size, 3)
        assert view.dtype == np.uint8
        assert (view == [255, 0, 0]).all()


def test_resize_keeps_pixels_of_the_right_size():
    for fit in ("stretch", "crop"):
        same = Resize((12, 17), fit=fit).view(Image.fromarray(RGB))
        np.testing.assert_array_equal(same, RGB) if fit == "stretch" else None
    square = RGB[:, :12]
    np.testing.assert_array_equal(
        Resize((12, 12), fit="crop").view(Image.fromarray(square)), square
    )


def test_crop_takes_the_centre_and_stretch_takes_all():
    """Three squares side by side, of which a crop shows the middle one."""
    strip = np.zeros((10, 30, 3), np.uint8)
    strip[:, 10:20] = 255
    strip[:, 20:] = (255, 0, 0)
    image = Image.fromarray(strip)
    nearest = {"interpolation": "nearest"}
    assert (Resize((10, 10), fit="crop", **nearest).view(image) == 255).all()
    stretched = Resize((10, 6), **nearest).view(image)
    np.testing.assert_array_equal(stretched[0, ::2, 1], [0, 255, 0])


def test_crop_fraction_shows_that_part_of_the_shorter_side():
    image = Image.fromarray(np.tile(np.arange(40, dtype=np.uint8), (40, 1)))
    view = Resize((20, 20), (0.5,), (0.5,), fit="crop", crop_fraction=0.5).view(image)
    np.testing.assert_array_equal(view[0, :, 0], np.arange(10, 30))


def test_black_is_black_and_white_is_white():
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    reader = ImageReader(Resize((4, 5), mean, std))
    pictures = [reader.read(Image.new("RGB", (9, 9), c)) for c in ("black", "white")]
    batch = reader.batch(pictures, CPU, torch.float64)
    black, white = batch.inputs["pixel_values"]
    np.testing.assert_allclose(reader.black(black[None])[0, :, 0, 0], -np.array(mean) / std)
    np.testing.assert_allclose(black, reader.black(black[None])[0].expand_as(black))
    np.testing.assert_allclose(white[:, 0, 0], (1 - np.array(mean)) / std)


@pytest.mark.parametrize("name", PROCESSORS)
def test_black_of_every_processor(name):
    processor = PROCESSORS[name]()
    expected = processor(Image.new("RGB", (40, 40)), return_tensors="pt")["pixel_values"].double()
    reader = ImageReader(ProcessorView(processor, 3))
    torch.testing.assert_close(
        reader.black(expected).expand_as(expected), expected, rtol=1e-6, atol=1e-6
    )
