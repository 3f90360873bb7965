"""What is installed: a wheel, also one made of a source distribution on a machine without Node, has the built app."""

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from sylph.interfaces.http.pages.browser_app import APP_FOLDER

ROOT = Path(__file__).resolve().parent.parent
INSIDE = "sylph/interfaces/http/app"

pytestmark = pytest.mark.skipif(not (APP_FOLDER / "index.html").is_file(), reason="the app is not built")


def built(source: Path, target: str, into: Path) -> Path:
    """Made as any installer has it made, but with no Node to be found."""
    said = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", into],
        cwd=source, env={"PATH": "/nowhere", "HOME": str(into)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    (made,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def test_a_wheel_has_all_of_the_app(tmp_path: Path) -> None:
    there = {f"{INSIDE}/{path.relative_to(APP_FOLDER).as_posix()}" for path in APP_FOLDER.rglob("*") if path.is_file()}
    with ZipFile(built(ROOT, "wheel", tmp_path)) as wheel:
        names = set(wheel.namelist())
        assert {name for name in names if name.startswith(INSIDE)} == there
        assert wheel.read(f"{INSIDE}/index.html") == (APP_FOLDER / "index.html").read_bytes()
    assert not [name for name in names if "node_modules" in name or name.startswith(("tests/", "web/"))]


def test_so_does_one_made_of_a_source_distribution(tmp_path: Path) -> None:
    with tarfile.open(built(ROOT, "sdist", tmp_path / "sdist")) as source:
        source.extractall(tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    assert not list(unpacked.rglob("node_modules"))
    with ZipFile(built(unpacked, "wheel", tmp_path / "wheel")) as wheel:
        assert wheel.read(f"{INSIDE}/index.html") == (APP_FOLDER / "index.html").read_bytes()
