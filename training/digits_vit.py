"""Train the digit classifier: a Vision Transformer of 0.1 million weights on MNIST."""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup

BATCH_SIZE = 256
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 0.05
WARMUP_SHARE = 0.05
MAX_ROTATION = 12.0  # degrees
MAX_SHIFT = 2.0  # pixels
MAX_ZOOM = 0.1

PREPROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": 28, "width": 28},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5],
    "image_std": [0.5],
}


def build_model() -> ViTForImageClassification:
    """Create the untrained model."""
    labels = {index: str(index) for index in range(10)}
    config = ViTConfig(
        image_size=28,
        patch_size=4,
        num_channels=1,
        hidden_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=192,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=labels,
        label2id={label: index for index, label in labels.items()},
    )
    return ViTForImageClassification(config)


def normalize(images: torch.Tensor) -> torch.Tensor:
    """Turn grey values of 0 to 1 into the model's input, as the preprocessor does."""
    return (images - 0.5) / 0.5


def augment(images: torch.Tensor) -> torch.Tensor:
    """Rotate, zoom and shift every image of a batch by its own small random amount."""
    count, _, height, _ = images.shape
    noise = torch.rand(4, count, device=images.device) * 2 - 1
    angle = noise[0] * torch.pi * MAX_ROTATION / 180
    zoom = 1 + noise[1] * MAX_ZOOM
    shift_x, shift_y = noise[2:] * MAX_SHIFT * 2 / height
    cosine, sine = torch.cos(angle) * zoom, torch.sin(angle) * zoom
    rows = [torch.stack([cosine, -sine, shift_x], 1), torch.stack([sine, cosine, shift_y], 1)]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def train(
    model: ViTForImageClassification, images: torch.Tensor, labels: torch.Tensor, epochs: int
) -> None:
    """Train on grey values of 0 to 1, with a cosine schedule."""
    device = images.device
    steps = len(images) // BATCH_SIZE
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
            inputs = normalize(augment(images[batch]))
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = model(pixel_values=inputs).logits
            loss = functional.cross_entropy(logits.float(), labels[batch])
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


def main() -> None:
    """Train, evaluate on the 10,000 test digits and save."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=here / ".data", help="folder of fetch.py")
    parser.add_argument("--out", type=Path, default=here / "out", help="parent of the model folder")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=50)
    arguments = parser.parse_args()

    torch.manual_seed(arguments.seed)
    with np.load(arguments.data / "digits.npz") as arrays:
        data = {name: torch.from_numpy(arrays[name]).to(arguments.device) for name in arrays}
    train_images = data["train_images"].unsqueeze(1) / 255
    test_images = data["test_images"].unsqueeze(1) / 255

    model = build_model().to(arguments.device)
    train(model, train_images, data["train_labels"].long(), arguments.epochs)
    accuracy, loss = evaluate(model, test_images, data["test_labels"].long())
    print(f"test accuracy {accuracy:.4f}, loss {loss:.4f} ({len(test_images)} digits)")

    folder = arguments.out / "digits-vit"
    model.save_pretrained(folder)
    text = json.dumps(PREPROCESSOR, indent=2) + "\n"
    (folder / "preprocessor_config.json").write_text(text, encoding="utf-8")
    print(f"saved {folder}")


if __name__ == "__main__":
    main()
