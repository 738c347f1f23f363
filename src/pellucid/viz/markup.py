"""HTML that nothing it shows can break: a plain string is escaped where it enters an element."""

from __future__ import annotations

import html
import re

_VOID = frozenset({"img", "input", "meta"})
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: object) -> Markup:
    """An element with its children; ``class_`` stands for class, ``data_tip`` for data-tip.

    An attribute that is None or False is left out, and one that is True has no value.
    """
    opening = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Several pieces one after the other, escaped unless they are HTML already."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one) for one in children))


def escape(text: str) -> Markup:
    """The text as HTML, safe between tags and between double quotes."""
    return Markup(html.escape(visible(text), quote=True))


def visible(text: str) -> str:
    """The text with its control characters as pictures of them, and halves of characters as �."""
    return _UNSEEN.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
