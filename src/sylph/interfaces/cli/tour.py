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

from sylph.app import App, build
from sylph.config import Config
from sylph.core.commands import Answer, Send
from sylph.core.errors import SylphError
from sylph.core.facts import Asked
from sylph.core.text import count
from sylph.engine.runtime import NewSession
from sylph.engine.summary import Summary
from sylph.interfaces.cli import codes
from sylph.interfaces.cli.door import Door
from sylph.interfaces.cli.runner import Runner
from sylph.interfaces.cli.screen import Screen
from sylph.interfaces.cli.views import ScreenView
from sylph.interfaces.render import line, question_lines
from sylph.providers import tour as script

FIX = "The test of greet.py fails. Find out why and repair it."
JOB = "Run the slow job."


class TourFailed(SylphError):
    """Something the tour shows did not come out as it must: the installation is not in order."""

    kind = "tour_failed"


@click.command()
@click.pass_obj
def command(door: Door) -> int:
    """Watch Sylph work, within a minute: a task, an approval, a kill -9, a resume, a proof.

    The model is a scripted stand-in; the runtime, the tools, the files and the log are real. No key, no network.
    """
    return run(door.config)


def run(config: Config) -> int:
    return asyncio.run(_tour(config))


async def _tour(config: Config) -> int:
    folder = Path(tempfile.mkdtemp(prefix="sylph-tour-"))
    try:
        await _steps(config, folder)
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


async def _steps(config: Config, folder: Path) -> None:
    (folder / "greet.py").write_text(script.BROKEN)
    (folder / "test_greet.py").write_text(script.TEST)
    async with build(config) as app:
        guide = Guide(app)
        guide.tell("The tour of Sylph. The model is a scripted stand-in, labelled as such; everything else is real.")
        guide.tell(f"It works in {folder} and takes less than a minute.")
        await _task(app, guide, folder)
        session = await _kill(guide, folder)
        await _resume(app, guide, folder, session)
        await _prove(guide, session)


async def _task(app: App, guide: "Guide", folder: Path) -> None:
    guide.title("1. A task, with an approval")
    guide.tell(f"The task: {FIX!r} In mode `ask` reading is free, and Sylph asks before it changes or runs anything.")
    new = NewSession(workspace=folder, model=f"{script.NAME}/fix", mode="ask", title="tour: repair a program")
    session = await app.runtime.create(new)
    if await guide.turn(Summary(id=session), Send(text=FIX)) == codes.INTERRUPTED.number:
        raise KeyboardInterrupt
    if not guide.refused and "!" not in (folder / "greet.py").read_text():
        raise TourFailed("The edit was approved, and greet.py is as it was.", next=["Run `sylph doctor`."])
    facts = await app.runtime.read(session)
    guide.tell(f"All of that is {count(len(facts), 'fact')} in one append-only log: sylph session show {session}")


async def _kill(guide: "Guide", folder: Path) -> str:
    guide.title("2. kill -9 in the middle of a command")
    guide.tell("A second Sylph now runs a command that takes two seconds, and is killed while it runs.")
    process = await asyncio.create_subprocess_exec(
        *_sylph("--json", "--mode", "trust", "-m", f"{script.NAME}/job", "-C", str(folder), JOB),
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
    guide.tell(f"Process {process.pid} is dead. The command it had started does not know, and runs on.")
    await asyncio.sleep(2.2)
    return session


async def _resume(app: App, guide: "Guide", folder: Path, session: str) -> None:
    guide.title("3. The turn goes on from the log")
    interrupted = {summary.id for summary in await app.runtime.interrupted()}
    if session not in interrupted:
        raise TourFailed("The killed turn was not found again.", details={"session": session})
    guide.tell(f"The log shows a turn without an end. What finishes it: sylph resume {session}")
    await _show(guide, "resume", session)
    if (begun := (folder / "journal.txt").read_text().count("begun")) != 1:
        raise TourFailed(f"The job was run {begun} times instead of once.", details={"session": session})


async def _prove(guide: "Guide", session: str) -> None:
    guide.title("4. Proof")
    guide.tell("Each fact carries a hash over itself and the one before. `sylph verify` walks the whole chain:")
    await _show(guide, "verify", session)
    guide.tell("Both sessions are kept (sylph session list); the folder is removed.")
    guide.title("Now with a real model")
    guide.tell(
        "`sylph connect` saves a key of Anthropic, OpenAI, Google or another provider; "
        "Ollama, llama.cpp, vLLM and LM Studio are found by themselves. "
        'Then: sylph "explain this project", or just sylph for the chat. '
        "With no key and no server, sylph models install small brings a small model to chat with, without tools."
    )


async def _show(guide: "Guide", *words: str) -> None:
    """Runs a command of Sylph's own, its output in the open."""
    guide.flush()
    process = await asyncio.create_subprocess_exec(*_sylph(*words), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    if code := await process.wait():
        raise TourFailed(f"`sylph {' '.join(words)}` ended with {code}.", next=["Run `sylph doctor`."])


def _sylph(*words: str) -> list[str]:
    return [sys.executable, "-m", "sylph", *words]


class Guide(Runner):
    """A runner whose every word goes to stdout, and who answers for the person where there is none."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._screen = Screen(sys.stdout, sys.stdout, colour=app.config.terminal.colour)
        self._view = ScreenView(self._screen)
        self.refused = False

    def title(self, text: str) -> None:
        self._screen.note([line(""), line(text, "bold")])

    def tell(self, text: str) -> None:
        self._screen.note([line(text, "dim")])

    def flush(self) -> None:
        sys.stdout.flush()

    async def _ask(self, asked: Asked) -> Answer:
        if self._keyboard is not None:
            answer = await super()._ask(asked)
            self.refused = self.refused or answer.answer == "no"
            return answer
        self._screen.note(question_lines(asked, self._view.called(asked)))
        self.tell("There is no terminal to answer on, so the tour says yes. (A real run would take that as a no.)")
        return Answer(id=asked.id, answer="yes", actor="tour")
