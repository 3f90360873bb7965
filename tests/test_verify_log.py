"""The sceptic's verifier and `sylph verify` never disagree, whatever was done to a log."""

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sylph.core import facts
from sylph.core.errors import SylphError
from sylph.core.events import UnreadableRecord
from sylph.engine.log import erase, export, verify
from sylph.engine.log.hash_chain import PendingFact, output_digest, salted_digest
from sylph.engine.log.store import EventLog

SCRIPT = Path(__file__).parents[1] / "scripts" / "verify_log.py"
SECRET = "hunter2"
WHOLES = [b"all of a long output", f"a long output with {SECRET} in it".encode()]
STRANGE = [b'{"of": "sheep"}', b"\xff\x00", b' {"spaced": 1} ', b'{"line":\n1}', b"", b'{"a":1,"data":{"data":2}}']


def _loaded() -> Any:
    spec = spec_from_file_location("verify_log", SCRIPT)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sceptic = _loaded()


async def _record(log: EventLog, session: str) -> None:
    """A session with strange names, strange records, whole outputs, and an erased secret in a fact and an output."""
    new = [
        facts.SessionCreated(workspace='/w/"ü"\n', model="m", mode="ask"),
        facts.InputReceived(id="i1", text=f"the password is {SECRET}"),
        *(
            facts.ToolFinished(call=f"t1_c{number}", ok=True, output="all", whole=output_digest(whole))
            for number, whole in enumerate(WHOLES)
        ),
        *(UnreadableRecord(type="dream\n.dreamt", raw=raw, why="") for raw in STRANGE),
        facts.SessionRenamed(title="\\ \u2028 \U0001f600"),
    ]
    drafts = [PendingFact(fact, 1_700_000_000_000, "t1", 'söme"body\x01', 0) for fact in new]
    await log.append(session, drafts, expected=0, blobs=[(output_digest(whole), whole) for whole in WHOLES]).done
    found = erase.find_secret(log, session, SECRET)
    await log.append(session, [PendingFact(found.to_fact("a secret"), 1, "", "user", 0)], expected=len(new)).done
    await erase.apply_erasure(log, session, found)


@dataclass(frozen=True)
class Recorded:
    store: Path
    lines: list[bytes]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    store = tmp_path_factory.mktemp("log") / "sylph.db"

    async def record() -> list[bytes]:
        with closing(EventLog.open(store)) as log:
            await _record(log, "s")
            await _record(log, "other")
            return [line async for line in export.export_session(log, "s")]

    return Recorded(store, asyncio.run(record()))


def _verdicts(store: Path) -> tuple[dict[str, bool], dict[str, bool]]:
    """What `sylph verify` says of every session, and what the script says."""
    with closing(EventLog.open(store)) as log:
        ours = {str(id): verify.verify_session(log, id).ok for id in log.all_session_ids()}
    return ours, {str(session): not problems for session, _, problems in sceptic.read_store(store)}


COLUMNS = ("session", "seq", "v", "turn", "ts", "type", "actor", "cause", "data", "salt", "hash")
HERE = "where session = 's' and seq = :row"
FORGED = "salt = forged(cast(salt as blob), cast(data as blob))"
TAMPERING = [
    *(f"update or ignore event set {column} = :value where seq = :row" for column in COLUMNS),
    *(f"update or ignore event set {column} = cast({column} as blob) {HERE}" for column in COLUMNS),
    f"update or ignore event set seq = :row + 1 {HERE}",
    f"update event set data = replace(data, 'e', 'E') {HERE}",
    f"update event set {FORGED}, data = '{{}}' {HERE}",
    f"update event set {FORGED} {HERE}",
    f"delete from event {HERE}",
    "delete from event where session = 's' and seq >= :row",
    "delete from event where type = 'session.erased'",
    "update event set data = '[]' where type = 'session.erased'",
    """update event set data = '{"facts":[],"blobs":{"x":[]}}' where type = 'session.erased'""",
    "update event set data = cast(data as text)",
    "update session set seq = :value",
    "update session set hash = :value",
    "update or ignore session set id = :value where id = 's'",
    "delete from session where id = 's'",
    "update blob set bytes = :value where session = 's'",
    "delete from blob where session = 's'",
]
values = st.one_of(st.integers(-3, 99), st.text(max_size=5), st.binary(max_size=5), st.sampled_from([1.5, "7x", b"s"]))
changes = st.tuples(st.sampled_from(TAMPERING), st.fixed_dictionaries({"value": values, "row": st.integers(1, 12)}))


def _forged(salt: bytes, data: bytes) -> bytes:
    return salted_digest(salt, data)


@settings(max_examples=200, deadline=None)
@given(tampering=st.lists(changes, max_size=3))
def test_both_say_the_same_of_a_store(recorded: Recorded, tampering: list[tuple[str, dict[str, object]]]) -> None:
    with TemporaryDirectory() as folder:
        store = Path(folder) / "sylph.db"
        shutil.copyfile(recorded.store, store)
        with closing(sqlite3.connect(store)) as db:
            db.create_function("forged", 2, _forged)
            for sql, bound in tampering:
                db.execute(sql, bound)
            db.commit()
        ours, theirs = _verdicts(store)
    assert ours == theirs


def test_an_untouched_log_is_fine_for_both(recorded: Recorded) -> None:
    assert _verdicts(recorded.store) == ({"other": True, "s": True},) * 2


async def _import(lines: list[bytes]) -> bool:
    """Whether an export can be brought in and then verifies."""
    with TemporaryDirectory() as folder, closing(EventLog.open(Path(folder) / "sylph.db")) as log:
        try:
            imported = await export.import_session(log, lines)
        except SylphError:
            return False
        return verify.verify_session(log, imported.session).ok


@st.composite
def lines_of(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    """An export that somebody was at: bytes changed, lines removed, doubled, swapped."""
    changed = list(lines)
    for _ in range(draw(st.integers(0, 2))):
        at, other = draw(st.integers(0, len(changed) - 1)), draw(st.integers(0, len(changed) - 1))
        line = changed[at]
        place = draw(st.integers(0, len(line) - 1))
        match draw(st.sampled_from(["byte", "digit", "gone", "twice", "swapped", "spaced"])):
            case "byte":
                changed[at] = line[:place] + bytes([draw(st.integers(32, 126))]) + line[place + 1 :]
            case "digit":
                changed[at] = re.sub(rb"\d+", b"%d" % draw(st.integers(0, 20)), line, count=draw(st.integers(1, 3)))
            case "gone":
                del changed[at]
            case "twice":
                changed.insert(other, line)
            case "swapped":
                changed[at], changed[other] = changed[other], changed[at]
            case _:
                changed[at] = line.replace(b',"', b' , "').replace(b":{", b" : {")
        if not changed:
            break
    return changed


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_both_say_the_same_of_an_export(recorded: Recorded, data: st.DataObject) -> None:
    lines = data.draw(lines_of(recorded.lines))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.ndjson"
        path.write_bytes(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
        (verdict,) = sceptic.read_export(path)
        with path.open("rb") as file:
            assert asyncio.run(_import(list(file))) == (not verdict[2]), verdict


def _run(*paths: Path) -> subprocess.CompletedProcess[str]:
    # Isolated and without site-packages: nothing but the standard library can be imported.
    command = [sys.executable, "-I", "-S", str(SCRIPT), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_runs_on_its_own(recorded: Recorded, tmp_path: Path) -> None:
    export = tmp_path / "s.ndjson"
    export.write_bytes(b"".join(recorded.lines))
    done = _run(recorded.store, export)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["other  12 facts  ok", "s  12 facts  ok", "s  12 facts  ok"]


def test_it_names_the_fact_that_was_changed(recorded: Recorded, tmp_path: Path) -> None:
    store = tmp_path / "sylph.db"
    shutil.copyfile(recorded.store, store)
    with closing(sqlite3.connect(store)) as db:
        db.execute("update event set actor = 'x' where session = 's' and seq = 3")
        db.commit()
    done = _run(store)
    assert done.returncode == 1
    assert "s  12 facts  NOT OK\n  fact 3 is not what was written" in done.stdout
    assert "other  12 facts  ok" in done.stdout


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    done = _run(tmp_path / "nothing")
    assert (done.returncode, "cannot be read" in done.stderr) == (2, True)
    assert _run().returncode == 1


def test_it_can_be_read_in_one_sitting() -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 205
    assert "sylph." not in "".join(re.findall(r"^(?:from|import) .*$", text, re.MULTILINE))
