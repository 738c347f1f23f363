"""Tiny models of many families, built from configs in milliseconds, without downloads.

Their weights are random but fixed; their tokenizers are built from a few words. They exist so that
every method meets every architecture in the tests, here and in other people's packages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pellucid.adapters import TorchAdapter, adapt
from pellucid.adapters.base import Adapter
from pellucid.adapters.image import Resize

WORDS = (
    *("a", "b", "the", "film", "is", "fine", "very", "bad", "not", "at", "all", "good", "waste"),
    *("of", "time", "plot", "actor", "we", "you", "and", "but", "it", "was", "great", "slow"),
    *("un", "##fine", "##ly", "##er", ",", ".", "!", "?"),
    *("é", "電", "影", "很", "好", "ف", "ي", "ل", "م", "😀"),
)
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARY = 300


def build(family: str, *, dtype: torch.dtype = torch.float32, **changes: Any) -> TorchAdapter:
    """A tiny model of the family, adapted; `changes` override its config."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, processor, options = FAMILIES[family](changes)
    module = module.eval().to(dtype)
    found = adapt(module, processor, name=family, **options)
    assert isinstance(found, TorchAdapter)
    return found


def sample_inputs(adapter: Adapter) -> list[Any]:
    """Three inputs that a tiny model can read, of different lengths where it reads texts."""
    if adapter.kind == "image":
        channels = adapter.reader.preprocessing.channels  # type: ignore[attr-defined]
        generator = torch.Generator().manual_seed(1)
        shape = (3, 40, 48) if channels == 1 else (3, 40, 48, channels)
        pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        return [image.numpy() for image in pixels]
    blank = "[MASK]" if adapter.task == "masked" else "fine"
    return [
        f"the film is {blank}",
        f"not very good , but it was {blank} at all",
        f"a {blank} waste of time and a slower plot !",
    ]


# ---- tokenizers ----------------------------------------------------------------------------------


def word_piece() -> Any:
    """A lower-casing WordPiece tokenizer with BERT's special tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(dict.fromkeys([*SPECIALS, *WORDS]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def byte_bpe(pad: bool = True) -> Any:
    """A byte-level BPE tokenizer as GPT-2's: no special token is added to a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", "<end>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the film is fine", "a great great film at all"] * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<end>",
        model_max_length=64,
        **({"pad_token": "<pad>"} if pad else {}),
    )


def sentence_piece() -> Any:
    """A Unigram tokenizer with SentencePiece's visible spaces and a leading <s>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = [(name, 0.0) for name in ("<pad>", "<s>", "</s>", "<unk>")]
    whole = [(f"▁{word}", -3.0) for word in WORDS if word.isalpha()]
    letters = sorted(
        {letter for word in WORDS for letter in word} | set("▁abcdefghijklmnopqrstuvwxyz")
    )
    pieces = (
        specials + whole + [(letter, -6.0) for letter in letters] + [("ly", -4.0), ("er", -4.0)]
    )
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A </s> $B:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        padding_side="left",
        model_max_length=64,
    )


# ---- families ------------------------------------------------------------------------------------

Built = tuple[nn.Module, Any, dict[str, Any]]
_SPREAD = 0.3  # of random weights: wide enough that attention and predictions are not uniform
_TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
    "max_position_embeddings": 64,
    "num_labels": 3,
    "initializer_range": _SPREAD,
}
_DECODER = _TEXT | {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
_GPT2 = {
    "initializer_range": _SPREAD,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "vocab_size": VOCABULARY,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "num_labels": 3,
}
_DISTIL = {
    "initializer_range": _SPREAD,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "num_labels": 3,
}
_IMAGE = {
    "initializer_range": _SPREAD,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": (32, 48),
    "patch_size": 8,
    "num_labels": 3,
}


def _text(
    model: str, config: str, defaults: dict[str, Any], tokenizer: Callable[[], Any]
) -> Callable[[dict[str, Any]], Built]:
    def make(changes: dict[str, Any]) -> Built:
        import transformers

        settings = getattr(transformers, config)(**(defaults | changes))
        return getattr(transformers, model)(settings), tokenizer(), {}

    return make


def _image(model: str, config: str, defaults: dict[str, Any]) -> Callable[[dict[str, Any]], Built]:
    def make(changes: dict[str, Any]) -> Built:
        import transformers

        settings = getattr(transformers, config)(**(defaults | changes))
        size = getattr(settings, "vision_config", settings).image_size
        height, width = (size, size) if isinstance(size, int) else size
        processor = transformers.ViTImageProcessorPil(
            size={"height": height, "width": width}, image_mean=[0.4, 0.5, 0.6]
        )
        return getattr(transformers, model)(settings), processor, {}

    return make


def _clip(changes: dict[str, Any]) -> Built:
    import transformers

    vision = _IMAGE | {"image_size": 32} | changes
    labels = vision.pop("num_labels")
    settings = transformers.CLIPConfig(vision_config=vision, text_config=_TEXT, num_labels=labels)
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32})
    return transformers.CLIPForImageClassification(settings), processor, {}


class PatchTransformer(nn.Module):
    """A vision Transformer as one writes it by hand, named as timm names its parts.

    `inline` attention is written out with a softmax; otherwise torch's own module is used.
    """

    def __init__(self, inline: bool, width: int = 32, classes: int = 3) -> None:
        super().__init__()
        self.num_classes = classes
        self.patch_embed = nn.Conv2d(3, width, 8, 8)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 25, width) * 0.02)
        block = InlineBlock if inline else TorchBlock
        self.blocks = nn.Sequential(*(block(width) for _ in range(2)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward_features(self, pixels: Tensor) -> Tensor:
        """The tokens after the last block (b t d)."""
        patches = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(pixels), -1, -1), patches], dim=1)
        found: Tensor = self.norm(self.blocks(tokens + self.pos_embed))
        return found

    def forward(self, pixels: Tensor) -> Tensor:
        """Class scores (b c)."""
        found: Tensor = self.head(self.forward_features(pixels)[:, 0])
        return found


class InlineBlock(nn.Module):
    """A pre-norm block whose attention is plain arithmetic."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Tensor) -> Tensor:
        """One block (b t d)."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
        x = x + self.proj((attention @ v).transpose(1, 2).flatten(2))
        found: Tensor = x + self.mlp(self.norm2(x))
        return found


class TorchBlock(nn.Module):
    """A pre-norm block around `nn.MultiheadAttention`."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Tensor) -> Tensor:
        """One block (b t d)."""
        normed = self.norm1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False)[0]
        found: Tensor = x + self.mlp(self.norm2(x))
        return found


class TokenTransformer(nn.Module):
    """A text classifier made of torch's own encoder layers, reading the mean of its tokens."""

    def __init__(self, width: int = 32, classes: int = 3) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, 4, 48, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Class scores (b c)."""
        hidden = self.encoder(self.table(input_ids), src_key_padding_mask=attention_mask == 0)
        weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
        found: Tensor = self.head((hidden * weights[..., None].to(hidden.dtype)).sum(dim=1))
        return found


def _timm_like(changes: dict[str, Any]) -> Built:  # every builder takes changes
    module = PatchTransformer(inline=True)
    config = {"input_size": (3, 32, 48), "crop_pct": 1.0, "architecture": "vit_tiny"}
    module.__dict__["pretrained_cfg"] = config
    return module, None, {}


def _plain_image(changes: dict[str, Any]) -> Built:
    return PatchTransformer(inline=False), Resize((32, 48)), {"labels": ["x", "y", "z"]}


def _plain_text(changes: dict[str, Any]) -> Built:
    return TokenTransformer(), word_piece(), {"labels": ["x", "y", "z"]}


FAMILIES: dict[str, Callable[[dict[str, Any]], Built]] = {
    "vit": _image("ViTForImageClassification", "ViTConfig", _IMAGE),
    "deit": _image("DeiTForImageClassification", "DeiTConfig", _IMAGE),
    "deit-distilled": _image("DeiTForImageClassificationWithTeacher", "DeiTConfig", _IMAGE),
    "beit": _image(
        "BeitForImageClassification",
        "BeitConfig",
        _IMAGE | {"image_size": 32, "use_relative_position_bias": True},
    ),
    "dinov2": _image("Dinov2ForImageClassification", "Dinov2Config", _IMAGE | {"image_size": 32}),
    "dinov2-registers": _image(
        "Dinov2WithRegistersForImageClassification",
        "Dinov2WithRegistersConfig",
        _IMAGE | {"image_size": 32, "num_register_tokens": 3},
    ),
    "clip-vision": _clip,
    "swin": _image(
        "SwinForImageClassification",
        "SwinConfig",
        {
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 2],
            "window_size": 4,
            "image_size": 32,
            "patch_size": 4,
            "num_labels": 3,
            "initializer_range": _SPREAD,
        },
    ),
    "timm-like": _timm_like,
    "plain-image": _plain_image,
    "plain-text": _plain_text,
    "bert": _text("BertForSequenceClassification", "BertConfig", _TEXT, word_piece),
    "bert-mlm": _text("BertForMaskedLM", "BertConfig", _TEXT, word_piece),
    "roberta": _text(
        "RobertaForSequenceClassification",
        "RobertaConfig",
        _TEXT | {"max_position_embeddings": 65},
        sentence_piece,
    ),
    "distilbert": _text(
        "DistilBertForSequenceClassification", "DistilBertConfig", _DISTIL, word_piece
    ),
    "distilbert-mlm": _text("DistilBertForMaskedLM", "DistilBertConfig", _DISTIL, word_piece),
    "electra": _text(
        "ElectraForSequenceClassification",
        "ElectraConfig",
        _TEXT | {"embedding_size": 16},
        word_piece,
    ),
    "modernbert": _text(
        "ModernBertForSequenceClassification",
        "ModernBertConfig",
        _TEXT
        | {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
        | {"classifier_pooling": "mean", "global_attn_every_n_layers": 2, "local_attention": 8},
        word_piece,
    ),
    "gpt2": _text("GPT2ForSequenceClassification", "GPT2Config", _GPT2, byte_bpe),
    "gpt2-lm": _text("GPT2LMHeadModel", "GPT2Config", _GPT2, byte_bpe),
    "llama": _text("LlamaForSequenceClassification", "LlamaConfig", _DECODER, sentence_piece),
    "llama-lm": _text("LlamaForCausalLM", "LlamaConfig", _DECODER, sentence_piece),
    "qwen2": _text("Qwen2ForSequenceClassification", "Qwen2Config", _DECODER, byte_bpe),
    "qwen3-lm": _text("Qwen3ForCausalLM", "Qwen3Config", _DECODER | {"head_dim": 8}, byte_bpe),
}
