"""A service's list of models as it was last told: read where asking would take time, and where nobody answers."""

import contextlib
import hashlib
import os
import time
from pathlib import Path

import msgspec

from sylph.core.provider import ModelInfo

FRESH = 3600.0  # seconds for which a list is as good as a new one


class CachedModelList(msgspec.Struct, frozen=True):
    at: float
    models: tuple[ModelInfo, ...]

    @property
    def is_fresh(self) -> bool:
        return 0 <= time.time() - self.at < FRESH


class ModelListCache:
    """The list of one service at one address, in a file of its own. Losing it costs a question, nothing else."""

    def __init__(self, folder: Path, name: str, base_url: str) -> None:
        where = hashlib.blake2b(base_url.encode(), digest_size=4).hexdigest()
        # Names of services are people's own: anything may stand in them.
        plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)[:40]
        self._path = folder / f"{plain}-{where}.json"
        self._read: CachedModelList | None = None
        self._known: dict[str, ModelInfo] | None = None

    def read(self) -> CachedModelList | None:
        if self._read is None:
            with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                self._read = msgspec.json.decode(self._path.read_bytes(), type=CachedModelList)
        return self._read

    def find_model(self, model: str) -> ModelInfo | None:
        if self._known is None:
            found = self.read()
            self._known = {info.name: info for info in found.models} if found else {}
        return self._known.get(model)

    def write(self, models: tuple[ModelInfo, ...]) -> None:
        """Keeps the list, if there is room for it."""
        self._read, self._known = CachedModelList(time.time(), models), None
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = self._path.with_suffix(f".{os.getpid()}.new")
            draft.write_bytes(msgspec.json.encode(self._read))
            draft.replace(self._path)
