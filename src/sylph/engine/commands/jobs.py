"""Background jobs: commands under the journaled runner that outlive the call, the turn and the process."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from sylph.core.command_run import BackgroundJob, CommandSpec, JobInput
from sylph.engine.commands.journal_reader import JournaledCommand, read_journal
from sylph.engine.commands.processes import kill_marked
from sylph.engine.commands.runner_client import (
    ATTEMPT_SEPARATOR,
    MAX_ATTEMPTS,
    POLL_SECONDS,
    RunnerClient,
    sandbox_failure,
)
from sylph.engine.sandbox import CommandRights

POLL_INTERVAL = 0.05
START_SECONDS = 5.0
STOP_SECONDS = 2.0
REPLY_SECONDS = 5.0


class SessionJobs:
    """core.run.Jobs over the journals of one session. Nothing is remembered: what is known is in the files."""

    def __init__(
        self, runner: RunnerClient, session: str, rights: CommandRights | None = None, *, ends_lost: bool = True
    ) -> None:
        self._runner, self._session, self._rights, self._ends_lost = runner, session, rights, ends_lost

    async def start(self, id: str, order: CommandSpec) -> BackgroundJob:
        order = await self._runner.confine_command(order, self._rights)
        for _ in range(MAX_ATTEMPTS):
            name = self._journal_name(id)
            self._runner.start_command(name, order)
            # A runner that died before it began the command has done nothing: another one may.
            if await self._wait_until_begun(id) or not self._runner.revoke_command(name):
                break
        story = self._read_journal(id)
        if story.ended and story.ended.unboxed:
            raise sandbox_failure(self.output(id, 0, 1000))
        return self._build_job(id, story)

    async def _wait_until_begun(self, id: str) -> bool:
        """Waits for the first words of the journal; False if the runner died before it wrote any."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            story = self._read_journal(id)
            if story.started or story.ended or not self._runner.alive:
                return story.intent is not None
            await asyncio.sleep(POLL_INTERVAL / 5)
        return True

    def all(self) -> list[BackgroundJob]:
        """The oldest first."""
        stories = [
            (path.stem.rpartition(".")[2].partition(ATTEMPT_SEPARATOR)[0], read_journal(path))
            for path in self._journal_paths()
        ]
        jobs = [(id, story) for id, story in stories if story.intent and story.intent.job]
        jobs.sort(key=lambda pair: pair[1].intent.at if pair[1].intent else 0.0)
        return [self._build_job(id, story) for id, story in jobs]

    def recover(self, id: str) -> BackgroundJob | None:
        return None if self._runner.revoke_command(self._journal_name(id)) else self.find(id)

    def find(self, id: str) -> BackgroundJob | None:
        story = self._read_journal(id)
        return self._build_job(id, story) if story.intent and story.intent.job else None

    def output(self, id: str, offset: int, limit: int) -> bytes:
        try:
            return self._runner.read_output(self._journal_name(id), offset, limit)
        except FileNotFoundError:
            return b""

    async def wait(self, id: str, seconds: float) -> BackgroundJob | None:
        end = time.monotonic() + seconds
        while (job := self.find(id)) and job.state == "running" and time.monotonic() < end:  # noqa: ASYNC110 - a file
            await asyncio.sleep(POLL_INTERVAL)
        return job

    async def wait_output(self, id: str, size: int, seconds: float) -> BackgroundJob | None:
        end = time.monotonic() + seconds
        notice = self._runner.wakeup_for(self._journal_name(id))
        while (job := self.find(id)) and job.state == "running" and job.bytes <= size and time.monotonic() < end:
            # A job of an earlier Sylph has a runner that sends us no notices.
            await notice.wait(min(POLL_SECONDS, seconds))
        return job

    async def send(self, id: str, input: JobInput) -> bool:
        if (known := self._read_journal(id).inputs.get(input.key)) is not None and known:
            return True
        line = {"do": "input", "id": input.key, "text": input.text, "close": input.close}
        if not await self._send_to_runner(id, line):
            return False
        end = time.monotonic() + REPLY_SECONDS
        while input.key not in (inputs := self._read_journal(id).inputs) and time.monotonic() < end:  # noqa: ASYNC110 - a file
            await asyncio.sleep(POLL_INTERVAL / 10)
        return inputs.get(input.key, False)

    def input_taken(self, id: str, key: str) -> bool:
        return self._read_journal(id).inputs.get(key, False)

    async def stop(self, id: str) -> BackgroundJob | None:
        job = self.find(id)
        if job and job.state == "lost":
            # Nobody watches it any more, but it may still be there.
            kill_marked(self._journal_name(id))
        if job is None or job.state != "running":
            return job
        if await self._send_to_runner(id, {"do": "stop"}):
            return await self.wait(id, STOP_SECONDS)
        self._runner.stop_command(self._journal_name(id))
        story = self._read_journal(id)
        if story.started and (job := await self.wait(id, 0.5)) and job.state == "running":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(story.started.pid, signal.SIGKILL)
        return await self.wait(id, STOP_SECONDS)

    async def purge(self) -> None:
        """Ends what runs, and forgets all of it."""
        for job in self.all():
            await self.stop(job.id)
        for path in self._runner.folder.glob(f"{self._session}.*"):
            path.unlink(missing_ok=True)

    async def _send_to_runner(self, id: str, said: Mapping[str, object]) -> bool:
        """Tells the runner of a job something, whoever started it; False if there is nobody to hear it."""
        # What somebody before us left unfinished ends here.
        left = memoryview(b"\n" + json.dumps(said).encode() + b"\n")
        try:
            fifo = os.open(self._file_path(id, "in"), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        end = time.monotonic() + REPLY_SECONDS
        try:
            while left and time.monotonic() < end:
                try:
                    # Two at once would tear each other's lines apart.
                    fcntl.flock(fifo, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    left = left[os.write(fifo, left) :]
                except BlockingIOError:
                    await asyncio.sleep(POLL_INTERVAL / 10)
        except OSError:
            return False
        finally:
            os.close(fifo)
        return not left

    def _build_job(self, id: str, story: JournaledCommand) -> BackgroundJob:
        out = self._file_path(id, "out")
        size = out.stat().st_size if out.exists() else 0
        command = (story.intent.title or "".join(story.intent.argv[-1:])) if story.intent else ""
        if ended := story.ended:
            exit = None if ended.failed else ended.exit
            return BackgroundJob(
                id=id, command=command, state="ended", exit=exit, why=ended.why, seconds=ended.seconds, bytes=size
            )
        state = "running" if story.runner_alive else "lost"
        if state == "lost" and self._ends_lost:
            # Nothing may run on unwatched.
            kill_marked(self._journal_name(id))
        began = story.intent.at if story.intent else time.time()
        took = max(time.time() - began, 0.0)
        return BackgroundJob(
            id=id,
            command=command,
            state=state,
            seconds=took,
            bytes=size,
            hears=story.accepts_input and story.runner_alive,
        )

    def _journal_paths(self) -> list[Path]:
        folder = self._runner.folder
        return list(folder.glob(f"{self._session}.*.run")) if folder.is_dir() else []

    def _read_journal(self, id: str) -> JournaledCommand:
        return read_journal(self._file_path(id, "run"))

    def _journal_name(self, id: str) -> str:
        # The id comes from a model: only the name of a file, never a way to one.
        return self._runner.newest_journal(f"{self._session}.{Path(id).name}")

    def _file_path(self, id: str, kind: str) -> Path:
        return self._runner.folder / f"{self._journal_name(id)}.{kind}"
