"""`sylph tour`: a scripted stand-in for a model drives the real thing, and every step is explained and checked."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from sylph.app import App, build_app
from sylph.config import Config
from sylph.core.commands import Answer, Send
from sylph.core.errors import SylphError
from sylph.core.facts.tool_call import Asked
from sylph.core.text.formatting import count_noun
from sylph.engine.folds.session_state import SessionState
from sylph.engine.runtime.runtime import NewSession
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.terminal.screen import TerminalScreen
from sylph.interfaces.cli.turn.output_view import ScreenTurnView
from sylph.interfaces.cli.turn.runner import TerminalTurnRunner
from sylph.interfaces.text.render import question_lines, styled_line
from sylph.providers import scripted_tour as script

FIX_TASK = "The test of greet.py fails. Find out why and repair it."
JOB_TASK = "Run the slow job."


class TourFailed(SylphError):
    """Something the tour shows did not come out as it must: the installation is not in order."""

    kind = "tour_failed"


@click.command()
@click.pass_obj
def command(cli: CliContext) -> int:
    """Watch Sylph work, within a minute: a task, an approval, a kill -9, a resume, a proof.

    The model is a scripted stand-in; the runtime, the tools, the files and the log are real. No key, no network.
    """
    return run_tour(cli.config)


def run_tour(config: Config) -> int:
    return asyncio.run(_run_in_folder(config))


async def _run_in_folder(config: Config) -> int:
    folder = Path(tempfile.mkdtemp(prefix="sylph-tour-"))
    try:
        await _run_steps(config, folder)
    except TourFailed as error:
        # What it left there may tell why.
        raise TourFailed(
            str(error), details={**error.trouble.details, "folder": folder}, next=error.trouble.next
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _run_steps(config: Config, folder: Path) -> None:
    (folder / "greet.py").write_text(script.BROKEN_PROGRAM)
    (folder / "test_greet.py").write_text(script.PROGRAM_TEST)
    async with build_app(config) as app:
        guide = TourGuide(app)
        guide.print_text(
            "The tour of Sylph. The model is a scripted stand-in, labelled as such; everything else is real."
        )
        guide.print_text(f"It works in {folder} and takes less than a minute.")
        await _show_task(app, guide, folder)
        session = await _show_kill(guide, folder)
        await _show_resume(app, guide, folder, session)
        await _show_proof(guide, session)


async def _show_task(app: App, guide: "TourGuide", folder: Path) -> None:
    guide.print_title("1. A task, with an approval")
    guide.print_text(
        f"The task: {FIX_TASK!r} In mode `ask` reading is free, and Sylph asks before it changes or runs anything."
    )
    new = NewSession(workspace=folder, model=f"{script.NAME}/fix", mode="ask", title="tour: repair a program")
    session = await app.runtime.create_session(new)
    if await guide.run_turn(SessionState(id=session), Send(text=FIX_TASK)) == exit_code.INTERRUPTED.number:
        raise KeyboardInterrupt
    if not guide.refused and "!" not in (folder / "greet.py").read_text():
        raise TourFailed("The edit was approved, and greet.py is as it was.", next=["Run `sylph doctor`."])
    facts = await app.runtime.read_events(session)
    guide.print_text(
        f"All of that is {count_noun(len(facts), 'fact')} in one append-only log: sylph session show {session}"
    )


async def _show_kill(guide: "TourGuide", folder: Path) -> str:
    guide.print_title("2. kill -9 in the middle of a command")
    guide.print_text("A second Sylph now runs a command that takes two seconds, and is killed while it runs.")
    process = await asyncio.create_subprocess_exec(
        *_sylph_argv("--json", "--mode", "trust", "-m", f"{script.NAME}/job", "-C", str(folder), JOB_TASK),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**20,
    )
    assert process.stdout
    session = ""
    try:
        async with asyncio.timeout(20):
            async for printed in process.stdout:
                event = json.loads(printed)
                session = event.get("session", session)
                if event.get("type") == "tool.started":
                    break
            while not (folder / "journal.txt").exists():  # noqa: ASYNC110 - a file of another process: nobody tells us
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise TourFailed("The slow job did not begin.", next=["Run `sylph doctor`."]) from error
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()
    guide.print_text(f"Process {process.pid} is dead. The command it had started does not know, and runs on.")
    await asyncio.sleep(2.2)
    return session


async def _show_resume(app: App, guide: "TourGuide", folder: Path, session: str) -> None:
    guide.print_title("3. The turn goes on from the log")
    interrupted = {summary.id for summary in await app.runtime.list_interrupted()}
    if session not in interrupted:
        raise TourFailed("The killed turn was not found again.", details={"session": session})
    guide.print_text(f"The log shows a turn without an end. What finishes it: sylph resume {session}")
    await _run_sylph(guide, "resume", session)
    if (begun := (folder / "journal.txt").read_text().count("begun")) != 1:
        raise TourFailed(f"The job was run {begun} times instead of once.", details={"session": session})


async def _show_proof(guide: "TourGuide", session: str) -> None:
    guide.print_title("4. Proof")
    guide.print_text("Each fact carries a hash over itself and the one before. `sylph verify` walks the whole chain:")
    await _run_sylph(guide, "verify", session)
    guide.print_text("Both sessions are kept (sylph session list); the folder is removed.")
    guide.print_title("Now with a real model")
    guide.print_text(
        "`sylph connect` saves a key of Anthropic, OpenAI, Google or another provider; "
        "Ollama, llama.cpp, vLLM and LM Studio are found by themselves. "
        'Then: sylph "explain this project", or just sylph for the chat. '
        "With no key and no server, sylph models install small brings a small model to chat with, without tools."
    )


async def _run_sylph(guide: "TourGuide", *words: str) -> None:
    """Runs a command of Sylph's own, its output in the open."""
    guide.flush_output()
    process = await asyncio.create_subprocess_exec(
        *_sylph_argv(*words), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    if code := await process.wait():
        raise TourFailed(f"`sylph {' '.join(words)}` ended with {code}.", next=["Run `sylph doctor`."])


def _sylph_argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "sylph", *words]


class TourGuide(TerminalTurnRunner):
    """A runner whose every word goes to stdout, and who answers for the person where there is none."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._screen = TerminalScreen(sys.stdout, sys.stdout, colour=app.config.terminal.colour)
        self._view = ScreenTurnView(self._screen)
        self.refused = False

    def print_title(self, text: str) -> None:
        self._screen.print_lines([styled_line(""), styled_line(text, "bold")])

    def print_text(self, text: str) -> None:
        self._screen.print_lines([styled_line(text, "dim")])

    def flush_output(self) -> None:
        sys.stdout.flush()

    async def _ask_question(self, asked: Asked) -> Answer:
        if self._keyboard is not None:
            answer = await super()._ask_question(asked)
            self.refused = self.refused or answer.answer == "no"
            return answer
        self._screen.print_lines(question_lines(asked, self._view.find_call(asked)))
        self.print_text(
            "There is no terminal to answer on, so the tour says yes. (A real run would take that as a no.)"
        )
        return Answer(id=asked.id, answer="yes", actor="tour")
