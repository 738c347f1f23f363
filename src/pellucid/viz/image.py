"""Heat over an image: the picture as the model saw it, and one coloured layer on top."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from pellucid._results import Explanation
from pellucid._types import Picture
from pellucid.viz.colour import Array, Scale
from pellucid.viz.group import Group
from pellucid.viz.markup import Markup, element
from pellucid.viz.wording import number

_CRISP = 128  # pictures up to this many pixels are enlarged without smoothing
_WIDEST = 22  # rem


def image_heat(explanation: Explanation, scale: Scale) -> Markup:
    """The picture under its heat; the script reads the exact numbers from the element's data."""
    assert isinstance(explanation.item, Picture)
    height, width = explanation.item.view.shape[:2]
    pixels = explanation.scores.dim() == 2
    grid: Array = (explanation.scores if pixels else explanation.patches()).double().numpy()
    top, left, bottom, right = (0, 0, height, width) if pixels else _covered(explanation.item)
    place = (
        f"top:{top / height:.4%};left:{left / width:.4%};"
        f"height:{(bottom - top) / height:.4%};width:{(right - left) / width:.4%}"
    )
    layer = element("img", src=_png(scale.rgba(grid)), alt="", class_="layer", style=place)
    return element(
        "div",
        element(
            "div",
            element("div", class_=_crisp("picture", explanation.item)),
            layer,
            class_="frame",
            style=f"aspect-ratio:{width}/{height};max-width:{_widest(width, height):.1f}rem",
            role="img",
            aria_label=_description(explanation, grid, scale),
            data_rows=grid.shape[0],
            data_columns=grid.shape[1],
            data_unit="pixel" if pixels else "patch",
            data_signed=scale.signed,
            data_scores=base64.b64encode(grid.astype("<f4").tobytes()).decode(),
        ),
        class_="image",
    )


def image_controls(group: Group, name: str) -> Markup:
    """What lies on what, and how strongly, for all methods of the input at once."""
    layers = [
        element(
            "label",
            element("input", type="radio", name=f"{name}-layers", class_=f"as-{layer}", checked=on),
            element("span", layer),
        )
        for layer, on in (("both", True), ("picture", False), ("heat", False))
    ]
    smooth = element("label", element("input", type="checkbox", class_="as-smooth"), "smooth")
    opacity = element(
        "label",
        "opacity ",
        element("input", type="range", min=0, max=100, value=80, class_="opacity"),
        class_="needs-script",
    )
    patches = any(one.scores.dim() == 1 for one in group.explanations)
    return element(
        "div",
        element("fieldset", element("legend", "Show"), *layers, class_="choice"),
        smooth if patches else Markup(),
        opacity,
        class_="controls",
    )


def thumbnail(picture: Picture) -> Markup:
    """The picture by itself, in its own colours."""
    height, width = picture.view.shape[:2]
    style = f"aspect-ratio:{width}/{height};width:{_widest(width, height) / 2.5:.1f}rem"
    return element(
        "div",
        class_=_crisp("picture thumbnail", picture),
        style=style,
        role="img",
        aria_label=f"the image as the model saw it, {width} by {height} pixels",
    )


def picture_uri(picture: Picture) -> str:
    """The picture as the model saw it, inside a data: URI."""
    return _png(picture.view[..., 0] if picture.view.shape[2] == 1 else picture.view)


def is_crisp(picture: Picture) -> bool:
    """Whether it is so small that it is enlarged without smoothing."""
    return max(picture.view.shape[:2]) <= _CRISP


def png_uri(image: Image.Image, **options: object) -> str:
    """An image inside a data: URI."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True, **options)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _png(pixels: Array) -> str:
    return png_uri(Image.fromarray(np.ascontiguousarray(pixels)))


def _covered(picture: Picture) -> tuple[int, int, int, int]:
    """The top, left, bottom and right of what the patches cover together."""
    boxes = [segment.box for segment in picture.segments if segment.box is not None]
    top, left, bottom, right = zip(*boxes, strict=True)
    return min(top), min(left), max(bottom), max(right)


def _description(explanation: Explanation, grid: Array, scale: Scale) -> str:
    unit = "pixels" if explanation.scores.dim() == 2 else "patches"
    largest = [f"{name} {number(score, signed=scale.signed)}" for name, score in explanation.top(3)]
    size = f"{grid.shape[0]} by {grid.shape[1]} {unit}"
    return f"{explanation.method}, {size}; largest scores: {'; '.join(largest)}"


def _crisp(names: str, picture: Picture) -> str:
    return f"{names} crisp" if is_crisp(picture) else names


def _widest(width: int, height: int) -> float:
    """The width in rem at which neither side is longer than is convenient."""
    return _WIDEST * min(1.0, width / height)
