"""`sylph replay`: runs a recorded session again, and shows the first thing that comes out differently."""

import time
from pathlib import Path

import click
import msgspec

from sylph.app import App
from sylph.core.errors import UserError
from sylph.core.text.formatting import count_noun
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_text
from sylph.interfaces.cli.kit.options import as_json as json_option
from sylph.interfaces.cli.terminal.session_picker import complete_session_ids
from sylph.providers.replay_providers import create_replay_providers
from sylph.replay import player
from sylph.replay.divergence import Divergence
from sylph.replay.player import RecordedSession, ReplayResult


@click.command()
@click.argument("session", shell_complete=complete_session_ids)
@click.option("--any-head", is_flag=True, help="Let prompts begin with another system text and other tools than then.")
@json_option
@click.pass_obj
def command(cli: CliContext, session: str, *, any_head: bool, as_json: bool) -> int:
    """Run SESSION again from its log: every prompt and every event must come out as they were, byte for byte.

    SESSION is an id, the start of one, `last`, or a file that `sylph session export` wrote. Answers of the model,
    results of tools, time and ids come from the log: nobody is asked and nothing is changed. The first difference is
    shown with both sides, and the exit code is 1.

    \b
      sylph replay last
      sylph replay recorded.ndjson --json
    """

    file = _read_recording(Path(session))

    async def work(app: App) -> ReplayResult:
        runtime = app.runtime
        recording = file or player.load_recording(runtime.log, (await runtime.find_session(session)).id)
        return await player.replay_session(recording, runtime.parts, create_replay_providers, any_head=any_head)

    began = time.monotonic()
    done = cli.run(work)
    if as_json:
        print_json(done)
    else:
        print_text("\n".join(_result_lines(done, time.monotonic() - began)))
    return exit_code.FAILED.number if done.divergence else 0


def _read_recording(path: Path) -> RecordedSession | None:
    """The recording in an exported file, if that is what is meant."""
    if not path.is_file():
        return None
    try:
        return player.parse_recording(path.read_bytes().splitlines())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", kind="failed") from error


def _result_lines(done: ReplayResult, seconds: float) -> list[str]:
    compared = f"{count_noun(done.matched, 'event')} and {count_noun(done.prompts, 'prompt')}"
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
        sides = [f"  - {found.expected.type} {_shorten_data(found.expected.data)}"] if found.expected else []
        sides += [f"  + {found.produced.type} {_shorten_data(found.produced.data)}"] if found.produced else []
    return [f"Event {found.seq}{where}: {found.what}", "  - recorded   + replayed", *sides]


def _shorten_data(data: msgspec.Raw) -> str:
    text = bytes(data).decode("utf-8", "replace")
    return text if len(text) <= 200 else text[:200] + "…"
