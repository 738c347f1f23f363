"""What is released: the files that belong to it, all of them, and one version everywhere."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import pellucid

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
MODELS = ("digits-vit", "reviews-bert", "reviews-mlm")
FIRST_MINUTE = {
    *(f"models/{name}/model.safetensors" for name in MODELS),
    *("py.typed", "viz/page.css", "viz/page.js"),
}


@pytest.fixture(scope="module")
def tracked():
    """What git has, or would have, of the files that are there; with their bytes."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    found = subprocess.run(listing, cwd=ROOT, capture_output=True)
    if found.returncode:
        pytest.skip("this is no checkout, so what belongs to the source is not known")
    names = filter(None, found.stdout.decode().split("\0"))
    return {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built from it, in a folder of their own."""
    missing = [name for name in ("build", "hatchling") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: pip install 'pellucid[dev]'")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """Its members by name."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built):
    """Its members by name, without the folder that they lie in."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = [member for member in archive.getmembers() if member.isfile()]
        return {
            member.name.split("/", 1)[1]: archive.extractfile(member).read() for member in files
        }


# ---- the archives --------------------------------------------------------------------------------


def test_the_wheel_is_the_package_and_its_description(wheel, tracked):
    """Byte for byte what is under src, and nothing else but the folder that pip reads."""
    expected = {
        name.removeprefix("src/"): data for name, data in tracked.items() if name.startswith("src/")
    }
    information = f"pellucid-{VERSION}.dist-info/"
    found = {name: data for name, data in wheel.items() if not name.startswith(information)}
    assert found.keys() == expected.keys()
    assert found == expected
    described = {name.removeprefix(information) for name in wheel.keys() - found.keys()}
    licences = {"licenses/LICENSE", "licenses/NOTICE"}
    assert described == {"METADATA", "WHEEL", "RECORD", "entry_points.txt"} | licences


def test_the_wheel_has_what_the_first_minute_needs_and_no_tests(wheel):
    names = {name.removeprefix("pellucid/") for name in wheel if name.startswith("pellucid/")}
    samples = [name for name in names if re.fullmatch(r"models/samples/.*\.(png|txt)", name)]
    assert names >= FIRST_MINUTE
    assert len(samples) > 5
    tests = re.compile(r"(^|/)(tests?/|conftest\.py|test_\w+\.py)")
    assert not [name for name in wheel if tests.search(name)]
    assert sum(map(len, wheel.values())) < 30e6, "models of this size belong on a hub"


def test_the_source_is_what_git_has(sdist, tracked):
    kept = tuple(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    always = ("pyproject.toml", "LICENSE", "NOTICE", ".gitignore")  # put there by hatchling
    expected = {
        name: data for name, data in tracked.items() if name.split("/")[0] in (*kept, *always)
    }
    found = {name: data for name, data in sdist.items() if name != "PKG-INFO"}
    assert found.keys() == expected.keys()
    assert found == expected


# ---- the version ---------------------------------------------------------------------------------


def test_there_is_one_version():
    """It is written in pyproject.toml; what repeats it must agree."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == VERSION
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == VERSION
    if pellucid.__version__ != "0+source":
        assert pellucid.__version__ == VERSION, "installed before the version changed"


def test_the_wheel_says_the_same_of_itself(wheel):
    description = email.message_from_bytes(wheel[f"pellucid-{VERSION}.dist-info/METADATA"])
    assert (description["Name"], description["Version"]) == ("pellucid", VERSION)
    assert description["Requires-Python"] == PROJECT["project"]["requires-python"]
    extras = set(description.get_all("Provides-Extra"))
    assert extras == set(PROJECT["project"]["optional-dependencies"])


def test_the_command_line_says_the_version():
    program = "import sys; from pellucid.cli import main; sys.argv[1:] = ['--version']; main()"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, f"pellucid {pellucid.__version__}\n")


# ---- what it runs on -----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["torch", "transformers"])
@pytest.mark.parametrize("file", ["Makefile", ".github/workflows/ci.yml"])
def test_the_oldest_supported_versions_are_those_that_are_tested(library, file):
    if not (ROOT / file).is_file():
        pytest.skip(f"{file} is not part of the source archive")
    wanted = next(one for one in PROJECT["project"]["dependencies"] if one.startswith(library))
    oldest = re.search(r">=([\d.]+)", wanted)[1]
    tested = re.findall(rf"{library}==([\d.]+)", (ROOT / file).read_text(encoding="utf-8"))
    assert tested
    assert all(f"{one}.".startswith(f"{oldest}.") for one in tested)


def test_every_extra_that_an_error_names_exists():
    written = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"pellucid\[(\w+)\]", written)) | {"pandas", "datasets"}
    assert named
    assert named <= set(PROJECT["project"]["optional-dependencies"])
