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


def word_pieces(texts: Sequence[str], *, size: int, longest: int) -> Any:
    """Lower-case pieces of words, as BERT's, between [CLS] and [SEP]."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=list(SPECIALS), limit_alphabet=100, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return _fast(tokenizer, longest)


def byte_pairs(texts: Sequence[str], *, size: int, longest: int) -> Any:
    """Pairs of bytes, as GPT-2's, with spaces inside and nothing added to a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _fast(tokenizer, longest)


def _fast(tokenizer: Any, longest: int) -> Any:
    from transformers import PreTrainedTokenizerFast

    # The token that ends a text stands for one of which everything was taken away.
    names = dict(zip(("pad", "unk", "cls", "eos", "mask"), SPECIALS, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        **{f"{name}_token": token for name, token in names.items()},
    )
