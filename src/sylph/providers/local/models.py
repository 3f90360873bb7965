"""The models of this machine as a service named `local`: what is known of each without starting anything."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import NoModel
from sylph.core.provider import ModelInfo
from sylph.providers.endpoint import Endpoint
from sylph.providers.local import packages
from sylph.providers.vendors.model_ranking import close_matches

NAME, SMALL = "local", "small"
# What the small model was trained for; and where it is stopped, for it may find no end.
SMALL_WINDOW, SMALL_OUTPUT = 8192, 512
# A window costs memory, also one that is not used: this much is taken where nobody says otherwise.
USUAL_WINDOW = 16_384


class AddedModelFile(Struct, frozen=True, kw_only=True):
    """A model file that the user has added."""

    path: str
    window: int | None = None
    tools: bool = False


class LocalModelInfo(ModelInfo, frozen=True, kw_only=True):
    """A model in a file. `size` are the bytes it takes up on the disk, 0 where the file is gone."""

    path: str
    size: int = 0


class LocalEndpoint(Endpoint, frozen=True, kw_only=True):
    """The runtime: where it and its files are, and how it is run. With no `threads`, all cores but one."""

    folder: Path
    threads: int = 0
    idle_seconds: float = 300.0
    environ: Mapping[str, str] = {}


class LocalRuntimeTerms(Struct, frozen=True, kw_only=True):
    """How the runtime is run, and the files that the user has added."""

    models: Mapping[str, AddedModelFile] = {}
    threads: int = 0
    idle_seconds: float = 300.0
    environ: Mapping[str, str] = {}


def build_local_endpoint(folder: Path, terms: LocalRuntimeTerms) -> LocalEndpoint | None:
    """The service, where there is a model for it: the user's own first, then the small one."""
    known = {name: _added_model(name, model) for name, model in terms.models.items()}
    if small := packages.small_model_path(folder):
        known[SMALL] = _small_model(small)
    if not known:
        return None
    return LocalEndpoint(
        name=NAME,
        base_url=folder.as_uri(),
        dialect=NAME,
        models=known,
        local=True,
        folder=folder,
        threads=terms.threads,
        idle_seconds=terms.idle_seconds,
        environ=terms.environ,
    )


def first_usable_model(endpoint: Endpoint) -> str:
    """The first model whose file is there; empty where all are gone."""
    models = endpoint.models.values()
    return next((each.name for each in models if isinstance(each, LocalModelInfo) and Path(each.path).exists()), "")


def missing_model_error(name: str, endpoint: Endpoint | None) -> NoModel:
    """That there is no such model here, and how it gets here."""
    near = close_matches(name, tuple(endpoint.models)) if endpoint else ()
    meant = f" Did you mean {' or '.join(f'{NAME}/{each}' for each in near)}?" if near else ""
    add = "sylph models install small" if name == SMALL else f"sylph models add FILE.gguf --name {name or 'NAME'}"
    return NoModel(f"There is no model {NAME}/{name} on this machine.{meant}", next=[add, "sylph models"])


def _added_model(name: str, told: AddedModelFile) -> LocalModelInfo:
    path, window = Path(told.path), told.window or USUAL_WINDOW
    return LocalModelInfo(name=name, path=told.path, size=_file_size(path), window=window, calls=told.tools, sees=False)


def _small_model(path: Path) -> LocalModelInfo:
    return LocalModelInfo(
        name=SMALL,
        path=str(path),
        size=_file_size(path),
        window=SMALL_WINDOW,
        output=SMALL_OUTPUT,
        calls=False,
        sees=False,
    )


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
