"""Train a classifier of small photographs: a Vision Transformer of 4.8 million weights on CIFAR-10.

It is for studies of explanations and comes with no package. Beside the model it writes test
pictures into a folder a class, as `pellucid.data.folder` reads them.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
BATCH_SIZE = 256
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.05
WARMUP_SHARE = 0.1
LABEL_SMOOTHING = 0.1
SHIFT = 4  # pixels
HOLE = 8  # pixels of a side

PREPROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": 32, "width": 32},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def build_model() -> ViTForImageClassification:
    """Create the untrained model."""
    config = ViTConfig(
        image_size=32,
        patch_size=4,
        hidden_size=256,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=1024,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: index for index, name in enumerate(CLASSES)},
    )
    return ViTForImageClassification(config)


def normalize(images: torch.Tensor) -> torch.Tensor:
    """Turn bytes into the model's input, as the preprocessor does."""
    return (images.float() / 255 - 0.5) / 0.5


def augment(images: torch.Tensor) -> torch.Tensor:
    """Mirror, shift and pierce every image of a batch by its own chance."""
    count, _, height, width = images.shape
    device = images.device
    mirrored = torch.rand(count, 1, 1, 1, device=device) < 0.5
    padded = functional.pad(torch.where(mirrored, images.flip(3), images), [SHIFT] * 4)
    top, left = torch.randint(0, 2 * SHIFT + 1, (2, count, 1), device=device)
    y = (top + torch.arange(height, device=device))[:, None, :, None]  # b 1 h 1
    x = (left + torch.arange(width, device=device))[:, None, None, :]  # b 1 1 w
    rows = torch.arange(count, device=device)[:, None, None, None]
    channels = torch.arange(3, device=device)[None, :, None, None]
    shifted = padded[rows, channels, y, x]
    centre = torch.randint(0, height, (2, count, 1, 1, 1), device=device)
    near_y = (torch.arange(height, device=device)[:, None] - centre[0]).abs() < HOLE / 2
    near_x = (torch.arange(width, device=device)[None, :] - centre[1]).abs() < HOLE / 2
    return shifted.masked_fill(near_y & near_x, 0)


def train(
    model: ViTForImageClassification, images: torch.Tensor, labels: torch.Tensor, epochs: int
) -> None:
    """Train on normalised images, with a cosine schedule."""
    device = images.device
    steps = max(1, len(images) // BATCH_SIZE)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
    )
    total_steps = epochs * steps
    scheduler = get_cosine_schedule_with_warmup(
        optimizer, int(WARMUP_SHARE * total_steps), total_steps
    )
    model.train()
    for epoch in range(1, epochs + 1):
        order = torch.randperm(len(images), device=device)
        total = torch.zeros((), device=device)
        for step in range(steps):
            batch = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = model(pixel_values=augment(normalize(images[batch]))).logits
            loss = functional.cross_entropy(
                logits.float(), labels[batch], label_smoothing=LABEL_SMOOTHING
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.detach()
        print(f"epoch {epoch:3d}/{epochs}: training loss {total.item() / steps:.4f}", flush=True)


@torch.no_grad()
def evaluate(
    model: ViTForImageClassification, images: torch.Tensor, labels: torch.Tensor
) -> tuple[float, float]:
    """Return accuracy and mean negative log-likelihood."""
    model.eval()
    logits = torch.cat([model(pixel_values=normalize(part)).logits for part in images.split(1000)])
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    return accuracy, functional.cross_entropy(logits, labels).item()


def save_pictures(images: np.ndarray, labels: np.ndarray, folder: Path) -> None:
    """Write pictures into a folder for each class."""
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        target = folder / CLASSES[label] / f"{number:05d}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(target)


def main() -> None:
    """Train, evaluate on the 10,000 test images and save."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=here / ".data", help="folder of fetch.py")
    parser.add_argument("--out", type=Path, default=here / "out", help="parent of the model folder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--images", type=int, default=50_000, help="train on the first so many")
    parser.add_argument("--pictures", type=int, default=1000, help="test pictures that are written")
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    with np.load(arguments.data / "cifar.npz") as arrays:
        data = {name: arrays[name] for name in arrays}
    images, labels = {}, {}
    for part, count in (("train", arguments.images), ("test", 10_000)):
        some = torch.from_numpy(data[f"{part}_images"][:count]).to(arguments.device)
        images[part] = some.permute(0, 3, 1, 2).contiguous()  # b c h w
        labels[part] = torch.from_numpy(data[f"{part}_labels"][:count]).long().to(arguments.device)

    model = build_model().to(arguments.device)
    train(model, images["train"], labels["train"], arguments.epochs)
    accuracy, loss = evaluate(model, images["test"], labels["test"])
    print(f"test accuracy {accuracy:.4f}, loss {loss:.4f} ({len(labels['test'])} images)")

    folder = arguments.out / "cifar-vit"
    model.save_pretrained(folder)
    text = json.dumps(PREPROCESSOR, indent=2) + "\n"
    (folder / "preprocessor_config.json").write_text(text, encoding="utf-8")
    some = slice(arguments.pictures)
    save_pictures(
        data["test_images"][some], data["test_labels"][some], arguments.out / "cifar-test"
    )
    print(f"saved {folder} and {arguments.out / 'cifar-test'}")


if __name__ == "__main__":
    main()
