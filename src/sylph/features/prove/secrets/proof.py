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
from sylph.core.events import encode_event
from sylph.diagnosis.collect import examine_session
from sylph.engine.redact.event_redactor import EventRedactor
from sylph.engine.redact.log_formatter import RedactingFormatter
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.redactor import NoRedaction
from sylph.engine.runtime.runtime import Runtime
from sylph.features.prove.secrets.canaries import OWN_PATTERN, CanarySet, make_canaries
from sylph.features.prove.secrets.leak_harness import LeakHarness
from sylph.features.prove.secrets.leak_paths import LEAK_PATHS
from sylph.replay.player import load_recording, replay_session
from sylph.testing import begin_session

PROOF_POLICY = RedactionPolicy(email=True, ip=True, patterns={"own": OWN_PATTERN})
ENTROPY = ("output of a command", "copied by the model", "a message of the person")
"""Tried once more for what only the look for random words finds."""

SecretsProgress = Callable[[int, int], None]


class LeakAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way out. `leaks` tells which kind was found, and where."""

    name: str
    kinds: int
    leaks: tuple[str, ...] = ()
    failed: str = ""
    """Why it was not tried at all: then nothing has held."""

    @property
    def held(self) -> bool:
        return not self.leaks and not self.failed


class SecretsProofReport(msgspec.Struct, frozen=True, kw_only=True):
    tried: list[LeakAttempt]
    places: Mapping[str, int]
    """What was looked through, and how many bytes of it."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return bool(self.tried) and all(one.held for one in self.tried)


class SecretsProofOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tried. Not `enabled`, it shows what is kept back otherwise."""

    only: str = ""
    enabled: bool = True


def prove_secrets(
    folder: Path, path: str, wish: SecretsProofOptions, progress: SecretsProgress = lambda _, __: None
) -> SecretsProofReport:
    """Tries the ways in scratch folders below `folder`."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ways, more = [name for name in LEAK_PATHS if wish.only in name], [name for name in ENTROPY if wish.only in name]
    if not ways:
        raise UserError(f"There is no way {wish.only!r}.", next=[f"Ways: {', '.join(LEAK_PATHS)}."])
    total = len(ways) + len(more)
    terms = replace(PROOF_POLICY, enabled=wish.enabled)
    usual = _run_in_scratch(folder, path, terms, ways, lambda done: progress(done, total))
    opted = _run_in_scratch(
        folder, path, replace(terms, entropy=True), more, lambda done: progress(len(ways) + done, total)
    )
    rows = [*usual.tried, *(replace(one, name=f"{one.name}, random words") for one in opted.tried)]
    return SecretsProofReport(tried=rows, places=usual.places, seconds=round(time.monotonic() - began, 1))


def _run_in_scratch(
    folder: Path, path: str, terms: RedactionPolicy, ways: list[str], progress: Callable[[int], None]
) -> SecretsProofReport:
    with tempfile.TemporaryDirectory(prefix="prove-", dir=folder, ignore_cleanup_errors=True) as scratch:
        return asyncio.run(_try_paths(LeakHarness(Path(scratch).resolve(), path, terms), ways, progress))


async def _try_paths(stage: LeakHarness, ways: list[str], progress: Callable[[int], None]) -> SecretsProofReport:
    failed: dict[str, str] = {}
    tried = {name: make_canaries(name, entropy=stage.terms.entropy) for name in ways}
    async with stage.serve_site():
        async with stage.open_runtime() as engine:
            handler = logging.StreamHandler(stage.log)
            handler.setFormatter(RedactingFormatter(engine.redactor))
            logging.getLogger("sylph").addHandler(handler)
            session = await begin_session(engine, stage.work)
            for number, name in enumerate(ways, 1):
                try:
                    await LEAK_PATHS[name](stage, engine, session, tried[name])
                except (SylphError, AssertionError, OSError) as error:
                    failed[name] = f"{type(error).__name__}: {error}"
                progress(number)
            logging.getLogger("sylph").removeHandler(handler)
            found = {**dict(_collect_outputs(stage, engine.redactor)), **await _collect_exports(engine, session)}
        # Closing writes as well.
        found |= {f"{name} (closed)": data for name, data in _collect_outputs(stage, engine.redactor)}
        await stage.close()
    rows = [
        LeakAttempt(
            name=name, kinds=len(each.values), leaks=tuple(_find_leaks(each, found)), failed=failed.get(name, "")
        )
        for name, each in tried.items()
    ]
    return SecretsProofReport(tried=rows, places=_sum_sizes(found))


def _sum_sizes(found: Mapping[str, bytes]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for name, data in found.items():
        place = name.removesuffix(" (closed)").partition(": ")[0]
        sizes[place] = sizes.get(place, 0) + len(data)
    return sizes


def _collect_outputs(stage: LeakHarness, redactor: NoRedaction) -> Iterator[tuple[str, bytes]]:
    """All that was sent, shown as a trace, logged, and lies in Sylph's own folder."""
    yield "sent to the model", b"\n".join(stage.model.sent)
    yield "sent to services", b"\n".join(stage.posted)
    trace = EventRedactor(redactor)
    yield "events", b"\n".join(encode_event(each) for event in stage.events for each in trace.redact_event(event))
    yield "log", stage.log.getvalue().encode()
    for path in sorted(stage.data.rglob("*")):
        if path.is_file():
            top = path.relative_to(stage.data)
            yield f"{top.parts[0] if len(top.parts) > 1 else top.name}: {top}", path.read_bytes()


async def _collect_exports(engine: Runtime, session: str) -> dict[str, bytes]:
    """What Sylph tells of a session when it is asked to."""
    export = [line async for line in engine.export_session(session)]
    findings = await examine_session(engine, session, lambda name: (engine.parts.gateway.providers[name],))
    again = await replay_session(
        load_recording(engine.log, session), engine.parts, lambda name: (engine.parts.gateway.providers[name],)
    )
    if again.divergence:
        raise SylphError(f"The replay differs: {again.divergence.what}")
    listed = msgspec.json.encode([await engine.list_sessions(), await engine.list_tasks(session)])
    return {"export": b"\n".join(export), "diagnosis": msgspec.json.encode(findings), "lists": listed}


def _find_leaks(each: CanarySet, found: Mapping[str, bytes]) -> Iterator[str]:
    for kind, value in each.labelled_values:
        for name, data in found.items():
            if any(form in data for form in _encoded_forms(value)):
                yield f"{kind} in {name}"


def _encoded_forms(value: str) -> Iterator[bytes]:
    """A value as it is, and as it would stand in other texts."""
    raw = value.encode()
    yield raw
    yield base64.b64encode(raw).rstrip(b"=")
    yield raw.hex().encode()
    if (quoted := msgspec.json.encode(value)[1:-1]) != raw:
        yield quoted
