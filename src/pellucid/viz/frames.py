"""Images along a walk: the original, the current one, and what is brighter or darker in it."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pellucid._decoded import Decoded, Frames
from pellucid._types import Picture
from pellucid.viz.colour import Array, Scale
from pellucid.viz.image import is_crisp, picture_uri, png_uri
from pellucid.viz.markup import Markup, element
from pellucid.viz.walk import Walk
from pellucid.viz.wording import number

_SHADES = 31  # of each of the two hues: a palette this small costs little in every frame
_CHANGED = 0.99  # of the changed pixels: a few extreme ones would leave the rest without colour
_WIDEST = 15  # rem


def frames(walk: Walk, picture: Picture, decoded: Decoded) -> Markup:
    """Three pictures, the second and third of them once for every point that is shown."""
    assert decoded.frames is not None
    changes = differences(picture, decoded.frames[walk.shown])
    scale = Scale.of(changes[changes != 0], signed=True, quantile=_CHANGED)
    iterations = decoded.iterations[walk.shown].tolist()
    views = [
        _view(picture_uri(Picture(decoded.frames[point])), f"the input at iteration {k}", picture)
        for point, k in zip(walk.shown, iterations, strict=True)
    ]
    layers = [
        _view(_diverging(change, scale), f"its difference at iteration {k}", picture)
        for change, k in zip(changes, iterations, strict=True)
    ]
    height, width = picture.view.shape[:2]
    size = f"--ratio:{width}/{height};--widest:{_WIDEST * min(1.0, width / height):.1f}rem"
    return element(
        "div",
        _column("original", _view(picture_uri(picture), "the original image", picture)),
        _column("current", stack(views)),
        _column("difference", stack(layers)),
        _legend(scale, colours=picture.view.shape[2] > 1),
        class_="frames",
        style=size,
    )


def stack(versions: list[Markup]) -> Markup:
    """One version for every point that is shown, in one place; without a script the last one."""
    last = len(versions) - 1
    layers = [
        element("div", version, class_="point", data_at=i, hidden=i < last)
        for i, version in enumerate(versions)
    ]
    return element("div", *layers, class_="points")


def differences(picture: Picture, frames: Frames) -> Array:
    """How much brighter every pixel is than in the original, from -255 to 255 (s h w)."""
    own: Array = frames.astype(np.float64) - picture.view.astype(np.float64)
    return np.asarray(own.mean(axis=-1))


def _column(name: str, content: Markup) -> Markup:
    return element("figure", element("figcaption", name), content)


def _view(uri: str, alt: str, picture: Picture) -> Markup:
    return element("img", src=uri, alt=alt, class_="view crisp" if is_crisp(picture) else "view")


def _diverging(change: Array, scale: Scale) -> str:
    """The difference in the two hues of a signed scale, clear where there is none."""
    levels = np.rint(scale.strength(change) * _SHADES) + _SHADES
    image = Image.fromarray(levels.astype(np.uint8), mode="P")
    colours = scale.ramp(2 * _SHADES + 1) * 255
    image.putpalette(colours[:, :3].round().astype(np.uint8).tobytes())
    clear = colours[:, 3].round().astype(np.uint8).tobytes()
    return png_uri(image, transparency=clear)


def _legend(scale: Scale, colours: bool) -> Markup:
    limit = number(scale.limit)
    ends = [f"−{limit}", "0", f"+{limit}"] if scale.limit else ["0"]
    sentences = [
        f"Levels of 255{', the mean over the colours' if colours else ''}; "
        "one scale for the whole walk."
    ]
    if scale.limit < scale.largest:
        sentences.append(f"Colours are full from {limit}; the largest is {number(scale.largest)}.")
    return element(
        "div",
        element("div", class_="ramp signed"),
        element("div", *(element("span", end) for end in ends), class_="ticks"),
        element("div", element("span", "darker"), element("span", "brighter"), class_="ends"),
        element("p", " ".join(sentences), class_="muted"),
        class_="legend",
    )
