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

from sylph.core.run import Input, Job, Order
from sylph.engine.processes import end_marked
from sylph.engine.runs import AGAIN, POLL, TRIES, Runner, unboxed
from sylph.engine.sandbox import Grip
from sylph.engine.story import Story, read_story

BEAT = 0.05
STARTING = 5.0
STOPPING = 2.0
HEARING = 5.0


class SessionJobs:
    """core.run.Jobs over the journals of one session. Nothing is remembered: what is known is in the files."""

    def __init__(self, runner: Runner, session: str, grip: Grip | None = None, *, ends_lost: bool = True) -> None:
        self._runner, self._session, self._grip, self._ends_lost = runner, session, grip, ends_lost

    async def start(self, id: str, order: Order) -> Job:
        order = await self._runner.confined(order, self._grip)
        for _ in range(TRIES):
            name = self._name(id)
            self._runner.order(name, order)
            # A runner that died before it began the command has done nothing: another one may.
            if await self._begun(id) or not self._runner.revoke(name):
                break
        story = self._story(id)
        if story.ended and story.ended.unboxed:
            raise unboxed(self.output(id, 0, 1000))
        return self._job(id, story)

    async def _begun(self, id: str) -> bool:
        """Waits for the first words of the journal; False if the runner died before it wrote any."""
        end = time.monotonic() + STARTING
        while time.monotonic() < end:
            story = self._story(id)
            if story.started or story.ended or not self._runner.alive:
                return story.intent is not None
            await asyncio.sleep(BEAT / 5)
        return True

    def all(self) -> list[Job]:
        """The oldest first."""
        stories = [(path.stem.rpartition(".")[2].partition(AGAIN)[0], read_story(path)) for path in self._journals()]
        jobs = [(id, story) for id, story in stories if story.intent and story.intent.job]
        jobs.sort(key=lambda pair: pair[1].intent.at if pair[1].intent else 0.0)
        return [self._job(id, story) for id, story in jobs]

    def recover(self, id: str) -> Job | None:
        return None if self._runner.revoke(self._name(id)) else self.find(id)

    def find(self, id: str) -> Job | None:
        story = self._story(id)
        return self._job(id, story) if story.intent and story.intent.job else None

    def output(self, id: str, offset: int, limit: int) -> bytes:
        try:
            return self._runner.output(self._name(id), offset, limit)
        except FileNotFoundError:
            return b""

    async def wait(self, id: str, seconds: float) -> Job | None:
        end = time.monotonic() + seconds
        while (job := self.find(id)) and job.state == "running" and time.monotonic() < end:  # noqa: ASYNC110 - a file
            await asyncio.sleep(BEAT)
        return job

    async def grown(self, id: str, size: int, seconds: float) -> Job | None:
        end = time.monotonic() + seconds
        notice = self._runner.notice(self._name(id))
        while (job := self.find(id)) and job.state == "running" and job.bytes <= size and time.monotonic() < end:
            # A job of an earlier Sylph has a runner that sends us no notices.
            await notice.wait(min(POLL, seconds))
        return job

    async def send(self, id: str, input: Input) -> bool:
        if (known := self._story(id).inputs.get(input.key)) is not None and known:
            return True
        line = {"do": "input", "id": input.key, "text": input.text, "close": input.close}
        if not await self._say(id, line):
            return False
        end = time.monotonic() + HEARING
        while input.key not in (inputs := self._story(id).inputs) and time.monotonic() < end:  # noqa: ASYNC110 - a file
            await asyncio.sleep(BEAT / 10)
        return inputs.get(input.key, False)

    def taken(self, id: str, key: str) -> bool:
        return self._story(id).inputs.get(key, False)

    async def stop(self, id: str) -> Job | None:
        job = self.find(id)
        if job and job.state == "lost":
            # Nobody watches it any more, but it may still be there.
            end_marked(self._name(id))
        if job is None or job.state != "running":
            return job
        if await self._say(id, {"do": "stop"}):
            return await self.wait(id, STOPPING)
        self._runner.stop(self._name(id))
        story = self._story(id)
        if story.started and (job := await self.wait(id, 0.5)) and job.state == "running":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(story.started.pid, signal.SIGKILL)
        return await self.wait(id, STOPPING)

    async def purge(self) -> None:
        """Ends what runs, and forgets all of it."""
        for job in self.all():
            await self.stop(job.id)
        for path in self._runner.folder.glob(f"{self._session}.*"):
            path.unlink(missing_ok=True)

    async def _say(self, id: str, said: Mapping[str, object]) -> bool:
        """Tells the runner of a job something, whoever started it; False if there is nobody to hear it."""
        # What somebody before us left unfinished ends here.
        left = memoryview(b"\n" + json.dumps(said).encode() + b"\n")
        try:
            fifo = os.open(self._path(id, "in"), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        end = time.monotonic() + HEARING
        try:
            while left and time.monotonic() < end:
                try:
                    # Two at once would tear each other's lines apart.
                    fcntl.flock(fifo, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    left = left[os.write(fifo, left) :]
                except BlockingIOError:
                    await asyncio.sleep(BEAT / 10)
        except OSError:
            return False
        finally:
            os.close(fifo)
        return not left

    def _job(self, id: str, story: Story) -> Job:
        out = self._path(id, "out")
        size = out.stat().st_size if out.exists() else 0
        command = (story.intent.title or "".join(story.intent.argv[-1:])) if story.intent else ""
        if ended := story.ended:
            exit = None if ended.failed else ended.exit
            return Job(
                id=id, command=command, state="ended", exit=exit, why=ended.why, seconds=ended.seconds, bytes=size
            )
        state = "running" if story.watched else "lost"
        if state == "lost" and self._ends_lost:
            # Nothing may run on unwatched.
            end_marked(self._name(id))
        began = story.intent.at if story.intent else time.time()
        took = max(time.time() - began, 0.0)
        return Job(id=id, command=command, state=state, seconds=took, bytes=size, hears=story.hears and story.watched)

    def _journals(self) -> list[Path]:
        folder = self._runner.folder
        return list(folder.glob(f"{self._session}.*.run")) if folder.is_dir() else []

    def _story(self, id: str) -> Story:
        return read_story(self._path(id, "run"))

    def _name(self, id: str) -> str:
        # The id comes from a model: only the name of a file, never a way to one.
        return self._runner.newest(f"{self._session}.{Path(id).name}")

    def _path(self, id: str, kind: str) -> Path:
        return self._runner.folder / f"{self._name(id)}.{kind}"
