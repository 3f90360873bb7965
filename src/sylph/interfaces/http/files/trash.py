"""What was deleted, kept until somebody wants it back or wants it gone: also what agents have deleted here."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from sylph.core.errors import NotFound
from sylph.core.ids import new_id
from sylph.core.places import real
from sylph.interfaces.http.files import carry
from sylph.interfaces.http.files.listing import Kind, kind_of
from sylph.interfaces.http.files.spot import Ground, Spot
from sylph.interfaces.http.files.workspaces import id_of
from sylph.interfaces.http.house import House
from sylph.interfaces.http.who import Who

FOLDER, ITEM, ORIGIN = "trash", "item", "origin.json"
ID = re.compile(r"([A-Za-z0-9_-]{1,64}\.)?[A-Za-z0-9_-]{1,64}")


class Origin(Struct, frozen=True, kw_only=True):
    """Where something in the trash comes from. The agent's `delete` writes the first three of these, too."""

    path: str
    workspace: str
    call: str
    by: str = ""
    at: int = 0


class TrashView(Struct, frozen=True, kw_only=True):
    """`session` is the one whose agent has deleted it; missing for what a person did."""

    id: str
    path: str
    kind: Kind
    size: int
    deleted: int
    session: str | None = None
    by: str | None = None


def bury(house: House, who: Who, spot: Spot) -> TrashView:
    """Puts something into the trash. Blocks; raises OSError, and then it is where it was."""
    spot.there()
    id = new_id()
    place = _own(house, spot.ground) / id
    place.mkdir(parents=True, mode=0o700)
    origin = Origin(
        path=spot.ground.told(spot.path),
        workspace=str(spot.ground.root),
        call=id,
        by=who.name,
        at=round(time.time() * 1000),
    )
    try:
        (place / ORIGIN).write_bytes(msgspec.json.encode(origin))
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            carry.move(spot.fd, spot.name, fd, ITEM)
        finally:
            os.close(fd)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    found = _view(place, id, "")
    assert found
    return found


def everything(house: House, ground: Ground) -> list[TrashView]:
    """All that was deleted in a workspace, the latest first. Blocks."""
    own = ((each, each.name, "") for each in _folders(_own(house, ground)))
    sessions = _folders(house.app.runtime.executor.private(""))
    theirs = (
        (each, f"{session.name}.{each.name}", session.name)
        for session in sessions
        for each in _folders(session / FOLDER)
    )
    found = [view for place, id, by in (*own, *theirs) if _of(place, ground) and (view := _view(place, id, by))]
    return sorted(found, key=lambda each: (each.deleted, each.id), reverse=True)


def find(house: House, ground: Ground, id: str) -> tuple[Path, Origin]:
    """The folder something is kept in. Raises NotFound."""
    session, _, call = id.rpartition(".")
    base = house.app.runtime.executor.private(session) / FOLDER if session else _own(house, ground)
    place = base / call
    if not ID.fullmatch(id) or not os.path.lexists(place / ITEM) or (origin := _of(place, ground)) is None:
        raise NotFound(f"There is nothing {id!r} in the trash of this workspace.", next=["GET …/trash lists it"])
    return place, origin


def _own(house: House, ground: Ground) -> Path:
    return house.app.config.data / FOLDER / id_of(ground.root)


def _folders(place: Path) -> Iterator[Path]:
    try:
        yield from (Path(each.path) for each in sorted(os.scandir(place), key=lambda each: each.name) if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return


def _of(place: Path, ground: Ground) -> Origin | None:
    """Where it comes from; None for another workspace."""
    try:
        origin = msgspec.json.decode((place / ORIGIN).read_bytes(), type=Origin)
    except (OSError, msgspec.DecodeError):
        return None
    return origin if real(origin.workspace) == ground.root else None


def _view(place: Path, id: str, session: str) -> TrashView | None:
    try:
        stat, told = (place / ITEM).lstat(), (place / ORIGIN).stat()
        origin = msgspec.json.decode((place / ORIGIN).read_bytes(), type=Origin)
    except (OSError, msgspec.DecodeError):
        return None
    kind = kind_of(stat)
    return TrashView(
        id=id,
        path=origin.path,
        kind=kind,
        size=stat.st_size if kind == "file" else 0,
        deleted=origin.at or told.st_mtime_ns // 1_000_000,
        session=session or None,
        by=origin.by or None,
    )
