"""Train the review models: a WordPiece vocabulary, a masked language model, a classifier.

The classifier starts from the masked language model and keeps its embedding module frozen, so
that both models share one embedding space bit for bit.
"""

import argparse
import csv
import gzip
import html
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from phrases import labelled_phrases
from tokenizers import BertWordPieceTokenizer
from torch.nn import functional
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertTokenizerFast,
    get_cosine_schedule_with_warmup,
)

LABELS = ["negative", "positive"]
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)

HELD_OUT = 5000
SPLIT_SEED = 0  # the split stays the same whatever seed the training uses

VOCABULARY_SIZE = 8000
ALPHABET_SIZE = 100
LONG_WIDTH = 256
SHORT_WIDTH = 128
MAX_SHORT_SENTENCES = 4

MLM_BATCH_SIZE = 512
MLM_LEARNING_RATE = 2e-3
CLASSIFIER_BATCH_SIZE = 256
CLASSIFIER_LEARNING_RATE = 5e-4
CLASSIFIER_DROPOUT = 0.1
EVALUATION_BATCH_SIZE = 250
WEIGHT_DECAY = 0.01
WARMUP_SHARE = 0.05
MASKED_SHARE = 0.15


def clean(text: str) -> str:
    """Remove line-break tags and entities, and collapse white space."""
    return " ".join(html.unescape(re.sub(r"<br\s*/?>", " ", text)).split())


def load_reviews(path: Path) -> tuple[list[str], list[int]]:
    """Read the cleaned reviews without duplicates, with their labels."""
    labels = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            labels.setdefault(clean(row["review"]), LABELS.index(row["sentiment"]))
    return list(labels), list(labels.values())


def train_tokenizer(texts: list[str]) -> BertTokenizerFast:
    """Train a lower-case WordPiece vocabulary."""
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(
        texts,
        vocab_size=VOCABULARY_SIZE,
        limit_alphabet=ALPHABET_SIZE,
        special_tokens=SPECIAL_TOKENS,
        show_progress=False,
    )
    vocabulary = tokenizer.get_vocab()
    return BertTokenizerFast(vocab=vocabulary, do_lower_case=True, model_max_length=LONG_WIDTH)


@dataclass
class Corpus:
    """Tokenized reviews as one flat tensor.

    Sentence ``s`` is ``tokens[sentence_starts[s] : sentence_starts[s + 1]]``, and review ``r``
    holds the sentences from ``review_starts[r]`` up to ``review_starts[r + 1]``.
    """

    tokens: torch.Tensor
    sentence_starts: torch.Tensor
    review_starts: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def device(self) -> torch.device:
        """The device that holds the tokens."""
        return self.tokens.device


def tokenize(
    tokenizer: BertTokenizerFast, texts: list[str], labels: list[int], device: str
) -> Corpus:
    """Split the reviews into sentences and tokenize these."""
    reviews = [re.split(r"(?<=[.!?])\s+", text) for text in texts]
    sentences = [sentence for review in reviews for sentence in review]
    ids = tokenizer(sentences, add_special_tokens=False, verbose=False)["input_ids"]
    tokens = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in ids])
    sentence_starts = np.cumsum([0] + [len(sentence) for sentence in ids])
    review_starts = np.cumsum([0] + [len(review) for review in reviews])
    arrays = [tokens, sentence_starts, review_starts, np.asarray(labels)]
    return Corpus(*(torch.from_numpy(array).to(device) for array in arrays))


def draw_sentences(corpus: Corpus, reviews: torch.Tensor) -> torch.Tensor:
    """Draw one sentence of every review."""
    first, last = corpus.review_starts[reviews], corpus.review_starts[reviews + 1]
    return first + (torch.rand(len(reviews), device=corpus.device) * (last - first)).long()


def draw_long(corpus: Corpus, reviews: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a long span of every review: half of them from its start, half from any sentence."""
    from_start = torch.rand(len(reviews), device=corpus.device) < 0.5
    sentences = draw_sentences(corpus, reviews)
    sentences = torch.where(from_start, corpus.review_starts[reviews], sentences)
    start = corpus.sentence_starts[sentences]
    end = corpus.sentence_starts[corpus.review_starts[reviews + 1]]
    return start, end - start


def draw_short(corpus: Corpus, reviews: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one to four sentences of every review, half of them without their last token.

    The last token is a full stop as a rule, and users often leave it out.
    """
    first = draw_sentences(corpus, reviews)
    count = torch.randint(1, MAX_SHORT_SENTENCES + 1, (len(reviews),), device=corpus.device)
    last = torch.minimum(first + count, corpus.review_starts[reviews + 1])
    start = corpus.sentence_starts[first]
    length = corpus.sentence_starts[last] - start
    return start, length - torch.randint(0, 2, (len(reviews),), device=corpus.device)


def gather(
    corpus: Corpus, start: torch.Tensor, length: torch.Tensor, width: int
) -> dict[str, torch.Tensor]:
    """Cut spans out of the corpus and wrap them as [CLS] ... [SEP] [PAD]..."""
    length = length.clamp(1, width - 2).unsqueeze(1)
    position = torch.arange(-1, width - 1, device=corpus.device).unsqueeze(0)
    index = (start.unsqueeze(1) + position).clamp(0, len(corpus.tokens) - 1)
    ids = torch.where(position < length, corpus.tokens[index], PAD)
    ids = ids.masked_fill(position < 0, CLS).masked_fill(position == length, SEP)
    return {"input_ids": ids, "attention_mask": (position <= length).long()}


def training_batches(corpus: Corpus, reviews: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """Return the long and the short batch of one training step."""
    return [
        gather(corpus, *draw_long(corpus, reviews), LONG_WIDTH),
        gather(corpus, *draw_short(corpus, reviews), SHORT_WIDTH),
    ]


def mask_words(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose 15 % of the words; mask 80 % of these, replace 10 %, leave 10 % as they are."""
    chosen = (torch.rand(ids.shape, device=ids.device) < MASKED_SHARE) & (ids > MASK)
    fate = torch.rand(ids.shape, device=ids.device)
    random_ids = torch.randint(MASK + 1, VOCABULARY_SIZE, ids.shape, device=ids.device)
    masked = torch.where(chosen & (fate < 0.8), MASK, ids)
    return torch.where(chosen & (fate >= 0.9), random_ids, masked), chosen


def mlm_logits(
    model: BertForMaskedLM, batch: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mask words of a batch; return the predictions at these places and the true words."""
    masked, chosen = mask_words(batch["input_ids"])
    output = model.bert(input_ids=masked, attention_mask=batch["attention_mask"])
    return model.cls(output.last_hidden_state[chosen]), batch["input_ids"][chosen]


def mlm_loss(
    model: BertForMaskedLM, batch: dict[str, torch.Tensor], _labels: torch.Tensor
) -> torch.Tensor:
    """Return the loss of the masked words; the labels play no part."""
    logits, words = mlm_logits(model, batch)
    return functional.cross_entropy(logits.float(), words)


def classifier_loss(
    model: BertForSequenceClassification, batch: dict[str, torch.Tensor], labels: torch.Tensor
) -> torch.Tensor:
    """Return the classification loss."""
    return functional.cross_entropy(model(**batch).logits.float(), labels)


def train(
    model, loss_function, corpus: Corpus, batch_size: int, learning_rate: float, epochs: int
) -> None:
    """Train the weights that are not frozen, on a long and a short span of every review."""
    device = corpus.device
    steps = len(corpus) // batch_size
    if not steps:
        raise SystemExit(f"--reviews: {len(corpus)} are less than one batch of {batch_size}")
    total_steps = epochs * steps
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=learning_rate, weight_decay=WEIGHT_DECAY, fused=True)
    scheduler = get_cosine_schedule_with_warmup(
        optimizer, int(WARMUP_SHARE * total_steps), total_steps
    )
    model.train()
    for epoch in range(1, epochs + 1):
        order = torch.randperm(len(corpus), device=device)
        totals = torch.zeros(2, device=device)
        for step in range(steps):
            reviews = order[step * batch_size : (step + 1) * batch_size]
            optimizer.zero_grad()
            for kind, batch in enumerate(training_batches(corpus, reviews)):
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    loss = loss_function(model, batch, corpus.labels[reviews])
                (loss / 2).backward()
                totals[kind] += loss.detach()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            scheduler.step()
        long_loss, short_loss = (totals / steps).tolist()
        print(
            f"epoch {epoch:3d}/{epochs}: loss {long_loss:.4f} (long), {short_loss:.4f} (short)",
            flush=True,
        )


@torch.no_grad()
def evaluate_mlm(model: BertForMaskedLM, corpus: Corpus) -> float:
    """Return the share of masked words of the reviews' beginnings that come first."""
    model.eval()
    hits = words = 0
    for reviews in torch.arange(len(corpus), device=corpus.device).split(EVALUATION_BATCH_SIZE):
        start = corpus.sentence_starts[corpus.review_starts[reviews]]
        end = corpus.sentence_starts[corpus.review_starts[reviews + 1]]
        logits, truth = mlm_logits(model, gather(corpus, start, end - start, LONG_WIDTH))
        hits += (logits.argmax(1) == truth).sum().item()
        words += len(truth)
    return hits / words


@torch.no_grad()
def evaluate_classifier(
    model: BertForSequenceClassification, corpus: Corpus
) -> tuple[float, float]:
    """Return the accuracy on the reviews' beginnings and on short chunks of them."""
    model.eval()
    hits = torch.zeros(2)
    for reviews in torch.arange(len(corpus), device=corpus.device).split(EVALUATION_BATCH_SIZE):
        start = corpus.sentence_starts[corpus.review_starts[reviews]]
        end = corpus.sentence_starts[corpus.review_starts[reviews + 1]]
        long_batch = gather(corpus, start, end - start, LONG_WIDTH)
        short_batch = gather(corpus, *draw_short(corpus, reviews), SHORT_WIDTH)
        for kind, batch in enumerate([long_batch, short_batch]):
            predicted = model(**batch).logits.argmax(1)
            hits[kind] += (predicted == corpus.labels[reviews]).sum().item()
    long_accuracy, short_accuracy = (hits / len(corpus)).tolist()
    return long_accuracy, short_accuracy


def build_mlm() -> BertForMaskedLM:
    """Create the untrained masked language model."""
    config = BertConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=LONG_WIDTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    return BertForMaskedLM(config)


def load_classifier(folder: Path) -> BertForSequenceClassification:
    """Create the classifier from the saved masked language model, its embeddings frozen."""
    model = BertForSequenceClassification.from_pretrained(
        folder,
        dtype=torch.float32,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        hidden_dropout_prob=CLASSIFIER_DROPOUT,
        attention_probs_dropout_prob=CLASSIFIER_DROPOUT,
    )
    model.bert.embeddings.requires_grad_(False)
    return model


def save(model, tokenizer: BertTokenizerFast, folder: Path) -> None:
    """Save a model in half precision, with its tokenizer."""
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"saved {folder}", flush=True)


def main() -> None:
    """Train the vocabulary, the masked language model and the classifier."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=here / ".data", help="folder of fetch.py")
    parser.add_argument("--out", type=Path, default=here / "out", help="parent of both folders")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=45, help="of the masked language model")
    parser.add_argument("--classifier-epochs", type=int, default=10)
    parser.add_argument("--reviews", type=int, help="use only so many reviews of each part")
    arguments = parser.parse_args()
    device = arguments.device

    texts, labels = load_reviews(arguments.data / "reviews.csv.gz")
    order = np.random.default_rng(SPLIT_SEED).permutation(len(texts))
    held_out, training = (
        ([texts[index] for index in part], [labels[index] for index in part])
        for part in (order[:HELD_OUT][: arguments.reviews], order[HELD_OUT:][: arguments.reviews])
    )
    tokenizer = train_tokenizer(training[0])
    held_out_corpus = tokenize(tokenizer, *held_out, device)
    training_corpus = tokenize(tokenizer, *training, device)
    print(f"{len(training_corpus)} training and {len(held_out_corpus)} held-out reviews")

    torch.manual_seed(arguments.seed)
    mlm = build_mlm().to(device)
    train(mlm, mlm_loss, training_corpus, MLM_BATCH_SIZE, MLM_LEARNING_RATE, arguments.epochs)
    mlm_folder = arguments.out / "reviews-mlm"
    save(mlm, tokenizer, mlm_folder)
    accuracy = evaluate_mlm(mlm.float(), held_out_corpus)
    print(f"held-out accuracy on masked words {accuracy:.4f}", flush=True)

    phrases, phrase_labels = labelled_phrases()
    mixed_corpus = tokenize(tokenizer, training[0] + phrases, training[1] + phrase_labels, device)
    classifier = load_classifier(mlm_folder).to(device)
    train(
        classifier,
        classifier_loss,
        mixed_corpus,
        CLASSIFIER_BATCH_SIZE,
        CLASSIFIER_LEARNING_RATE,
        arguments.classifier_epochs,
    )
    save(classifier, tokenizer, arguments.out / "reviews-bert")
    long_accuracy, short_accuracy = evaluate_classifier(classifier.float(), held_out_corpus)
    print(f"held-out accuracy {long_accuracy:.4f} (reviews), {short_accuracy:.4f} (chunks)")


if __name__ == "__main__":
    main()
