"""The demonstration models that come with the package: ordinary Hugging Face folders."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def bundled_names() -> list[str]:
    """The names that `pellucid.load("pellucid/<name>")` knows."""
    return sorted(path.parent.name for path in _HERE.glob("*/config.json"))


def bundled_path(name: str) -> Path:
    """The folder of a bundled model."""
    return _HERE / name


def model_summary(name: str) -> str:
    """The first sentence of a bundled model's card."""
    card = (bundled_path(name) / "README.md").read_text(encoding="utf-8")
    body = card.split("# " + name, 1)[-1].strip()
    return " ".join(body.split("\n\n", 1)[0].split()).split(": ", 1)[0] + "."


def sample_images() -> list[Path]:
    """Pictures to try the bundled image model on."""
    return sorted((_HERE / "samples").glob("*.png"))


def sample_texts() -> list[str]:
    """Texts to try the bundled text models on."""
    lines = (_HERE / "samples" / "reviews.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip()]
