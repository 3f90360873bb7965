"""Has canaries of every kind go every way through real turns, and looks for them in every byte that is left or sent."""

import asyncio
import base64
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sylph.core.errors import SylphError, UserError
from sylph.core.events import line_of
from sylph.engine.examine import examine
from sylph.engine.redact.discreet import Discreet
from sylph.engine.redact.terms import Terms
from sylph.engine.redact.trace import Trace
from sylph.engine.redact.veil import Veil
from sylph.engine.replay import from_log, replay
from sylph.engine.runtime import Runtime
from sylph.prove.canaries import OWN, Canaries, canaries
from sylph.prove.stage import Stage
from sylph.prove.ways import WAYS
from sylph.testing import begin

TERMS = Terms(email=True, ip=True, patterns={"own": OWN})
ENTROPY = ("output of a command", "copied by the model", "a message of the person")
"""Tried once more for what only the look for random words finds."""

Progress = Callable[[int, int], None]


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One way out. `leaks` tells which kind was found, and where."""

    name: str
    kinds: int
    leaks: tuple[str, ...] = ()
    failed: str = ""
    """Why it was not tried at all: then nothing has held."""

    @property
    def held(self) -> bool:
        return not self.leaks and not self.failed


class Report(msgspec.Struct, frozen=True, kw_only=True):
    tried: list[Tried]
    places: Mapping[str, int]
    """What was looked through, and how many bytes of it."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return bool(self.tried) and all(one.held for one in self.tried)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tried. Not `enabled`, it shows what is kept back otherwise."""

    only: str = ""
    enabled: bool = True


def prove(folder: Path, path: str, wish: Wish, progress: Progress = lambda _, __: None) -> Report:
    """Tries the ways in scratch folders below `folder`."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ways, more = [name for name in WAYS if wish.only in name], [name for name in ENTROPY if wish.only in name]
    if not ways:
        raise UserError(f"There is no way {wish.only!r}.", next=[f"Ways: {', '.join(WAYS)}."])
    total = len(ways) + len(more)
    terms = replace(TERMS, enabled=wish.enabled)
    usual = _scratch(folder, path, terms, ways, lambda done: progress(done, total))
    opted = _scratch(folder, path, replace(terms, entropy=True), more, lambda done: progress(len(ways) + done, total))
    rows = [*usual.tried, *(replace(one, name=f"{one.name}, random words") for one in opted.tried)]
    return Report(tried=rows, places=usual.places, seconds=round(time.monotonic() - began, 1))


def _scratch(folder: Path, path: str, terms: Terms, ways: list[str], progress: Callable[[int], None]) -> Report:
    with tempfile.TemporaryDirectory(prefix="prove-", dir=folder, ignore_cleanup_errors=True) as scratch:
        return asyncio.run(_all(Stage(Path(scratch).resolve(), path, terms), ways, progress))


async def _all(stage: Stage, ways: list[str], progress: Callable[[int], None]) -> Report:
    failed: dict[str, str] = {}
    tried = {name: canaries(name, entropy=stage.terms.entropy) for name in ways}
    async with stage.site():
        async with stage.runtime() as engine:
            handler = logging.StreamHandler(stage.log)
            handler.setFormatter(Discreet(engine.veil))
            logging.getLogger("sylph").addHandler(handler)
            session = await begin(engine, stage.work)
            for number, name in enumerate(ways, 1):
                try:
                    await WAYS[name](stage, engine, session, tried[name])
                except (SylphError, AssertionError, OSError) as error:
                    failed[name] = f"{type(error).__name__}: {error}"
                progress(number)
            logging.getLogger("sylph").removeHandler(handler)
            found = {**dict(_places(stage, engine.veil)), **await _told(engine, session)}
        # Closing writes as well.
        found |= {f"{name} (closed)": data for name, data in _places(stage, engine.veil)}
        await stage.close()
    rows = [
        Tried(name=name, kinds=len(each.values), leaks=tuple(_leaks(each, found)), failed=failed.get(name, ""))
        for name, each in tried.items()
    ]
    return Report(tried=rows, places=_sizes(found))


def _sizes(found: Mapping[str, bytes]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, data in found.items():
        place = name.removesuffix(" (closed)").partition(": ")[0]
        sizes[place] = sizes.get(place, 0) + len(data)
    return sizes


def _places(stage: Stage, veil: Veil) -> Iterator[tuple[str, bytes]]:
    """All that was sent, shown as a trace, logged, and lies in Sylph's own folder."""
    yield "sent to the model", b"\n".join(stage.model.sent)
    yield "sent to services", b"\n".join(stage.posted)
    trace = Trace(veil)
    yield "events", b"\n".join(line_of(each) for event in stage.events for each in trace.see(event))
    yield "log", stage.log.getvalue().encode()
    for path in sorted(stage.data.rglob("*")):
        if path.is_file():
            top = path.relative_to(stage.data)
            yield f"{top.parts[0] if len(top.parts) > 1 else top.name}: {top}", path.read_bytes()


async def _told(engine: Runtime, session: str) -> dict[str, bytes]:
    """What Sylph tells of a session when it is asked to."""
    export = [line async for line in engine.export(session)]
    findings = await examine(engine, session, lambda name: (engine.parts.gateway.providers[name],))
    again = await replay(
        from_log(engine.log, session), engine.parts, lambda name: (engine.parts.gateway.providers[name],)
    )
    if again.divergence:
        raise SylphError(f"The replay differs: {again.divergence.what}")
    listed = msgspec.json.encode([await engine.sessions(), await engine.tasks(session)])
    return {"export": b"\n".join(export), "diagnosis": msgspec.json.encode(findings), "lists": listed}


def _leaks(each: Canaries, found: Mapping[str, bytes]) -> Iterator[str]:
    for kind, value in each.all:
        for name, data in found.items():
            if any(form in data for form in _forms(value)):
                yield f"{kind} in {name}"


def _forms(value: str) -> Iterator[bytes]:
    """A value as it is, and as it would stand in other texts."""
    raw = value.encode()
    yield raw
    yield base64.b64encode(raw).rstrip(b"=")
    yield raw.hex().encode()
    if (quoted := msgspec.json.encode(value)[1:-1]) != raw:
        yield quoted
