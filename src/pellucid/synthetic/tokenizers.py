"""Tokenizers made on the spot: of whole words, or trained on texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(5)


def of_words(words: Sequence[str], *, longest: int, begins: bool) -> Any:
    """One token a word, words being what spaces separate; [CLS] in front where a text `begins`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {word: i for i, word in enumerate([*SPECIALS, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", CLS)]
        )
    return _fast(tokenizer, longest + begins)


def of_texts(texts: Sequence[str], *, size: int, longest: int, encloses: bool) -> Any:
    """Pairs of bytes, most frequent first, the space before a word belonging to it.

    With `encloses` texts are in lower case and between [CLS] and [SEP]. (A trainer of word pieces
    breaks ties at random, so that no seed would give the same model again.)
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if encloses:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if encloses:
        _enclose(tokenizer)
    return _fast(tokenizer, longest)


def _enclose(tokenizer: Any) -> None:
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )


def _fast(tokenizer: Any, longest: int) -> Any:
    from transformers import PreTrainedTokenizerFast

    # The token that ends a text stands for one of which everything was taken away.
    names = dict(zip(("pad", "unk", "cls", "eos", "mask"), SPECIALS, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        **{f"{name}_token": token for name, token in names.items()},
    )
