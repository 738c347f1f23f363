"""Readers of public data sets, from parquet files of one table each with the columns named."""

from __future__ import annotations

from pathlib import Path

from pellucid.data.dataset import Dataset
from pellucid.data.files import text_entry
from pellucid.data.table import parquet

_PRONOUNS = ("he", "she", "him", "her", "his", "hers")
Spans = tuple[tuple[int, int], ...]  # of characters
SENTIMENT = ("negative", "positive")


def pets(path: str | Path) -> Dataset:
    """Oxford-IIIT Pet: pictures of 37 breeds, with the animal's outline not counted.

    Columns: id, breed (0 to 36), species, split, image, trimap (1 animal, 2 background, 3 border).
    """
    return parquet(
        path,
        input="image",
        label="breed",
        id="id",
        about=("species", "split"),
        mask="trimap",
        codes={1: 1, 2: 0, 3: -1},
    )


def hatexplain(path: str | Path) -> Dataset:
    """HateXplain: posts, and the fraction of annotators that marked each word.

    Columns: id, split, tokens, label (0 hatespeech, 1 normal, 2 offensive), rationales (a list an
    annotator; normal posts have none, and their rationale is zero).
    """
    found = parquet(
        path,
        words="tokens",
        label="label",
        id="id",
        about=("split",),
        rationale="rationales",
    )
    return found.relabel(("hatespeech", "normal", "offensive"))


def yelp_hat(path: str | Path) -> Dataset:
    """Yelp-HAT: reviews, and which words each annotator needed to tell their sentiment.

    Columns: part, label, words, maps (0 or 1 a word, one map an annotator).
    """
    found = parquet(path, words="words", label="label", about=("part",), attention="maps")
    return found.relabel(SENTIMENT)


def winobias(path: str | Path, *, mask: str | None = None) -> Dataset:
    """WinoBias: sentences about two people at work and a pronoun, without labels.

    Columns: kind ("pro" or "anti" the stereotype), type, split, sentence (with its [mentions]).
    `about["mentions"]` says which characters of the text they are. `mask`, such as "[MASK]", stands
    in place of the first of them that is a pronoun, for a model that is asked which; sentences
    without one are then left out.
    """
    marked = parquet(path, input="sentence", about=("kind", "type", "split"))
    entries = []
    for sample in marked:
        plain = _unmarked(sample.input)
        found = plain if mask is None else _asked(*plain, mask)
        if found is not None:
            text, mentions = found
            about = {**sample.about, "mentions": mentions}
            entries.append(text_entry(sample.id, text, None, about))
    return Dataset(marked.name, "text", tuple(entries))


def sentence_polarity(path: str | Path) -> Dataset:
    """Sentences of film reviews. Columns: text, label (0 negative, 1 positive)."""
    return parquet(path, input="text", label="label").relabel(SENTIMENT)


def imdb(path: str | Path) -> Dataset:
    """Reviews of films. Columns: text, label (0 negative, 1 positive)."""
    return parquet(path, input="text", label="label").relabel(SENTIMENT)


def _unmarked(sentence: str) -> tuple[str, Spans]:
    """The text without square brackets, and the characters that each pair of them held."""
    text, mentions, start = "", [], 0
    for character in sentence:
        if character == "[":
            start = len(text)
        elif character == "]":
            mentions.append((start, len(text)))
        else:
            text += character
    return text, tuple(mentions)


def _asked(text: str, mentions: Spans, mask: str) -> tuple[str, Spans] | None:
    """The text with the mask in place of its first pronoun, and where the mentions are then."""
    pronouns = [(a, b) for a, b in mentions if text[a:b].casefold() in _PRONOUNS]
    if not pronouns:
        return None
    start, end = pronouns[0]
    longer = len(mask) - (end - start)
    moved = tuple((a + longer * (a > start), b + longer * (b > start)) for a, b in mentions)
    return text[:start] + mask + text[end:], moved
