"""`sylph replay`: runs a recorded session again, and shows the first thing that comes out differently."""

import time
from pathlib import Path

import click
import msgspec

from sylph.app import App
from sylph.core.errors import UserError
from sylph.core.text import count
from sylph.engine import replay
from sylph.engine.divergence import Divergence
from sylph.engine.replay import Recording, Replayed
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door, put, put_json
from sylph.interfaces.cli.options import as_json as json_option
from sylph.interfaces.cli.picker import session_names
from sylph.providers.dialects import dialects


@click.command()
@click.argument("session", shell_complete=session_names)
@click.option("--any-head", is_flag=True, help="Let prompts begin with another system text and other tools than then.")
@json_option
@click.pass_obj
def command(door: Door, session: str, *, any_head: bool, as_json: bool) -> int:
    """Run SESSION again from its log: every prompt and every event must come out as they were, byte for byte.

    SESSION is an id, the start of one, `last`, or a file that `sylph session export` wrote. Answers of the model,
    results of tools, time and ids come from the log: nobody is asked and nothing is changed. The first difference is
    shown with both sides, and the exit code is 1.

    \b
      sylph replay last
      sylph replay recorded.ndjson --json
    """

    file = _file(Path(session))

    async def work(app: App) -> Replayed:
        runtime = app.runtime
        recording = file or replay.from_log(runtime.log, (await runtime.find(session)).id)
        return await replay.replay(recording, runtime.parts, dialects, any_head=any_head)

    began = time.monotonic()
    done = door.run(work)
    if as_json:
        put_json(done)
    else:
        put("\n".join(_lines(done, time.monotonic() - began)))
    return codes.FAILED.number if done.divergence else 0


def _file(path: Path) -> Recording | None:
    """The recording in an exported file, if that is what is meant."""
    if not path.is_file():
        return None
    try:
        return replay.from_lines(path.read_bytes().splitlines())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", kind="failed") from error


def _lines(done: Replayed, seconds: float) -> list[str]:
    compared = f"{count(done.matched, 'event')} and {count(done.prompts, 'prompt')}"
    if done.divergence:
        return [f"{done.session}: {compared} came out as they were, then:", *divergence_lines(done.divergence)]
    if done.other_heads:
        return [f"{done.session}: {compared} came out as they were, but for the head of {done.other_heads} prompts."]
    return [f"{done.session}: {compared} came out as they were, byte for byte ({seconds:.1f} s)."]


def divergence_lines(found: Divergence) -> list[str]:
    """Both sides of the first difference."""
    place = found.expected or found.produced
    where = f" ({place.turn})" if place and place.turn else ""
    sides = [f"  {line}" for line in found.differences]
    if not sides:
        sides = [f"  - {found.expected.type} {_short(found.expected.data)}"] if found.expected else []
        sides += [f"  + {found.produced.type} {_short(found.produced.data)}"] if found.produced else []
    return [f"Event {found.seq}{where}: {found.what}", "  - recorded   + replayed", *sides]


def _short(data: msgspec.Raw) -> str:
    text = bytes(data).decode("utf-8", "replace")
    return text if len(text) <= 200 else text[:200] + "…"
