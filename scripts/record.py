"""Records the sessions of tests/recordings: the real program with a model that follows a script.

    scripts/record              all of them
    scripts/record tools fork   some

Recordings are kept, and every later version replays them. One is made anew only if its prompts were meant to change.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.model_server import Asked, ModelServer, Step, call, calls, fail, say

from sylph.app import App, build_app
from sylph.config import load_config
from sylph.core import commands, facts, signals
from sylph.core.events import Event, EventBody
from sylph.core.facts.delivery import DeliveryConfirmed
from sylph.core.permission.types import Mode
from sylph.core.tool import ImageData
from sylph.engine.runtime.runtime import NewSession

ROOT = Path(__file__).parent.parent
RECORDINGS = ROOT / "tests" / "recordings"
# Prompts name the workspace; this one says nothing about the machine.
WORKSPACE = Path("/tmp/sylph-recording")
SLEEP = "echo begun; sleep 30"
LONG = "Once there was a long story, and it went on and on. " * 60
CONFIG = """\
probe = false
[providers.openai]
base_url = "{url}"
dialect = "chat"
api_key = "not-a-key"
[providers.spoken-responses]
base_url = "{url}"
dialect = "responses"
[providers.ollama]
base_url = "{root}"
[providers.anthropic]
base_url = "{root}"
api_key = "not-a-key"
[providers.google]
base_url = "{root}"
api_key = "not-a-key"
[providers.openai.models.small]
window = 3000
price_in = 1.0
price_out = 2.0
[providers.openai.models.cheap]
price_in = 1.0
price_out = 2.0
[notify]
command = ["sh", "-c", 'test -e "$HOME/told" || {{ touch "$HOME/told"; exit 1; }}']
"""

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c636060606000000005"
    "0001a5f645400000000049454e44ae426082"
)
SPOKEN = ("chat", "responses", "ollama", "anthropic", "gemini")
Story = Callable[["Stage"], Awaitable[None]]


@dataclass
class Stage:
    """One session in the making."""

    app: App
    home: Path
    session: str = ""
    after: int = 0

    async def begin(self, *, mode: Mode = "trust", model: str = "big") -> None:
        new = NewSession(workspace=WORKSPACE, model=f"openai/{model}", mode=mode)
        self.session = await self.app.runtime.create_session(new)

    async def send(self, command: commands.Command) -> str:
        return await self.app.runtime.send(self.session, command)

    async def say(self, text: str, **how: object) -> None:
        """Says something and waits for the end of the turn; questions get the next answer."""
        await self.open(text, **how)
        await self.app.runtime.wait_until_idle(self.session)

    async def open(self, text: str, **how: object) -> None:
        self.after = self.app.runtime.log.head(self.session).seq
        await self.send(commands.Send(text=text, **how))  # pyright: ignore[reportArgumentType] - its own fields

    async def see(self, wanted: Callable[[EventBody], bool]) -> Event:
        async with asyncio.timeout(20):
            async for event in self.app.runtime.watch(self.session, after=self.after):
                if wanted(event.body):
                    self.after = event.seq or self.after
                    return event
        raise AssertionError("a watch does not end by itself")

    async def answer(self, *said: tuple[str, str]) -> None:
        """Answers the questions that come, one after the other."""
        for text, actor in said:
            asked = (await self.see(lambda body: isinstance(body, facts.Asked))).body
            assert isinstance(asked, facts.Asked)
            changed = '{"command":"touch changed"}' if text == "edit" else ""
            answer = commands.Answer(id=asked.id, answer=text, reason="as I said", actor=actor, arguments=changed)
            await self.send(answer)

    async def settle(self) -> None:
        await self.app.runtime.wait_until_idle(self.session)


async def tools(stage: Stage) -> None:
    (WORKSPACE / "AGENTS.md").write_text("Write plainly.\n")
    (WORKSPACE / "a.txt").write_text("one\ntwo\n")
    (WORKSPACE / "b.txt").write_text("three\n")
    await stage.begin()
    await stage.say("look, change, run")
    await stage.say("and now in a rush: grüße 🙂")


TOOLS = [
    call("plan", steps=[{"text": "look", "status": "doing"}, {"text": "change", "status": "pending"}]),
    calls(("read", {"path": "a.txt"}), ("read", {"path": "b.txt"}), ("grep", {"pattern": "two"}), ("list", {})),
    calls(("edit", {"path": "a.txt", "old": "two", "new": "2"}), ("write", {"path": "new/c.txt", "content": "c\n"})),
    calls(("shell", {"command": "cat a.txt; exit 3"}), ("shell", {"command": "seq 5000"})),
    calls(("read", {"path": "gone.txt"}), ("nothing", {}), ("read", {"pfad": 1}), ("edit", {"path": "a.txt"})),
    say("All done.", reasoning="I think that is all."),
    Step(text="One moment.", calls=(("shell", {"command": "echo schön"}),)),
    say("Done."),
]


async def approvals(stage: Stage) -> None:
    await stage.begin(mode="ask")
    await stage.open("change things")
    await stage.answer(("yes", "user"), ("yes", "user"), ("no", "user"), ("edit", "user"))
    await stage.answer(("session", "user"), ("blue", "user"), ("", "nobody"))
    await stage.settle()
    await stage.say("plan only", dry_run=True)
    await stage.send(commands.SetMode(mode="plan"))
    await stage.say("and now?")


APPROVALS = [
    calls(("write", {"path": "a", "content": "a"}), ("write", {"path": "b", "content": "b"})),
    calls(("write", {"path": "c", "content": "c"}), ("shell", {"command": "rm a"}), ("shell", {"command": "touch x"})),
    call("write", path="d", content="d"),
    call("write", path="d2", content="d"),
    call("ask_user", questions=[{"question": "Which colour?"}]),
    call("shell", command="echo nobody sees this"),
    say("Asked."),
    calls(("write", {"path": "e", "content": "e"}), ("shell", {"command": "touch f"}), ("read", {"path": "a"})),
    say("That is what I would do."),
    call("write", path="g", content="g"),
    say("I may not."),
]


async def revoked(stage: Stage) -> None:
    """What is allowed for the session is not asked about, until it is taken back."""
    await stage.begin(mode="ask")
    await stage.open("touch it")
    await stage.answer(("session", "user"))
    await stage.settle()
    granted = (await stage.app.runtime.find_session(stage.session)).grants
    await stage.send(commands.RevokeGrant(rule=granted[0]))
    await stage.open("once more")
    await stage.answer(("no", "user"))
    await stage.settle()


TOUCH = call("shell", command="touch x")
REVOKED = [TOUCH, TOUCH, say("Touched."), TOUCH, say("I may not.")]


async def steering(stage: Stage) -> None:
    await stage.begin()
    await stage.open("a slow thing", key="k1")
    await stage.see(lambda body: isinstance(body, facts.ToolStarted))
    await stage.send(commands.Send(text="a detail"))
    await stage.send(commands.Send(text="afterwards", delivery="follow"))
    taken = await stage.send(commands.Send(text="never mind", delivery="follow"))
    await stage.send(commands.Withdraw(id=taken))
    await stage.send(commands.Send(text="a slow thing", key="k1"))
    await stage.settle()
    await stage.open("and once more")
    await stage.see(lambda body: isinstance(body, facts.ModelRequested))
    await stage.send(commands.Rename(title="Steered"))
    await stage.send(commands.Pin())
    await stage.send(commands.MarkSeen(upto=4))
    await stage.send(commands.Send(text="while you think"))
    await stage.settle()
    await stage.send(commands.Archive())


STEERING = [
    call("shell", command="sleep 0.4; echo slow"),
    say("Steered."),
    say("Followed."),
    say("Hm.", delay=0.1),
    say("Heard."),
]


async def stopped(stage: Stage) -> None:
    await stage.begin()
    await stage.open("tell me a story")
    await stage.see(lambda body: body.wire == "delta.text")
    await stage.send(commands.Interrupt(reason="too long"))
    await stage.settle()
    await stage.open("run it")
    await stage.see(lambda body: isinstance(body, facts.ToolStarted))
    await stage.send(commands.Interrupt())
    await stage.settle()
    await stage.send(commands.SetMode(mode="ask"))
    await stage.open("ask me")
    await stage.see(lambda body: isinstance(body, facts.Asked))
    await stage.send(commands.Interrupt(reason="I do not care"))
    await stage.settle()
    await stage.say("still there?")


STOPPED = [
    say(LONG, delay=0.02),
    calls(("shell", {"command": SLEEP}), ("shell", {"command": "echo next"})),
    call("shell", command="echo asked"),
    say("Yes."),
]


async def paused(stage: Stage) -> None:
    await stage.begin()
    await stage.open("two steps")
    await stage.see(lambda body: isinstance(body, facts.ToolStarted))
    await stage.send(commands.Pause())
    await stage.see(lambda body: isinstance(body, facts.StateChanged) and body.to == "paused")
    await stage.send(commands.SetModel(model="openai/other"))
    await stage.send(commands.Continue())
    await stage.settle()
    await stage.send(commands.Retry())
    await stage.settle()
    await stage.send(commands.Retry(turn="t1", text="one step"))
    await stage.settle()
    await stage.send(commands.Delete())
    await stage.send(commands.Restore())
    await stage.say("and on")


PAUSED = [call("shell", command="sleep 0.3"), say("Both."), say("Again."), say("One."), say("On.")]


async def troubled(stage: Stage) -> None:
    await stage.begin()
    await stage.say("first the service is busy")
    await stage.say("then it breaks off")
    await stage.say("then it refuses")
    await stage.say("then it works")


TROUBLED = [
    fail(429, "slow down", headers={"retry-after": "0"}),
    fail(500, "boom"),
    say("Here I am."),
    say("Half of it is lost.", drop=True, at="stream"),
    fail(400, "bad day"),
    say("Better."),
]


async def condensed(stage: Stage) -> None:
    await stage.begin(model="small")
    for text in ("tell me a story", "another one", "and a third one", "one more", "the last one"):
        await stage.say(text)
    await stage.send(commands.SetModel(model="openai/big"))
    await stage.say("what was it about?")
    await stage.say("and what else?")
    await stage.send(commands.Compact())
    await stage.say("and?")


def condensed_script() -> Callable[[Asked], Step]:
    overflow = [fail(400, "maximum context length is 8192 tokens", code="context_length_exceeded")]

    def step(asked: Asked) -> Step:
        told = sum(len(message["content"] or "") for message in asked.json["messages"][1:])
        usage = {"prompt_tokens": told // 4, "completion_tokens": 5, "total_tokens": told // 4 + 5}
        if "tools" not in asked.json:
            return say("The person wanted stories, and got long ones about this and that.", usage=usage)
        if asked.json["model"] == "big" and overflow:
            return overflow.pop()
        return say(LONG if asked.json["model"] == "small" else "It was about a long story.", usage=usage)

    return step


async def fork(stage: Stage) -> None:
    await stage.begin()
    await stage.say("write it")
    called = await stage.see(lambda body: isinstance(body, facts.ToolCalled))
    stage.session = await stage.app.runtime.fork_session(stage.session, at=called.seq)
    await stage.say("write something else")
    stage.session = await stage.app.runtime.fork_session(stage.session)
    await stage.say("and more")


FORK = [
    calls(("write", {"path": "a", "content": "a"}), ("write", {"path": "b", "content": "b"})),
    say("Written."),
    call("write", path="c", content="c"),
    say("Written too."),
    say("More."),
]


async def killed(stage: Stage) -> None:
    """Killed for real in the middle of a command, twice: once it is found again, once the model was at it."""
    await stage.begin()
    id = stage.session
    for words in (["run", "-s", id, "a slow job"], ["resume", id]):
        seen = stage.app.runtime.log.head(id).seq
        process = await program(stage.home, *words)
        while not await at_work(stage, seen + 5):  # noqa: ASYNC110 - another process is at it
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        process.kill()
        await process.wait()
    done = await program(stage.home, "resume", id)
    assert await done.wait() == 0


async def at_work(stage: Stage, after: int) -> bool:
    events = await stage.app.runtime.read_events(stage.session, after=after)
    return any(isinstance(event.body, facts.ToolStarted | facts.ModelRequested) for event in events)


KILLED = [
    call("shell", command="echo begun; sleep 1; echo done; exit 4"),
    say("I am thinking about it.", delay=0.2),
    say("It ended with 4."),
]


async def notified(stage: Stage) -> None:
    """The first try to tell the person fails while the turn goes on; the second comes after its end."""
    await stage.begin()
    await stage.say("tell me")
    await stage.see(lambda body: isinstance(body, DeliveryConfirmed) and body.attempt > 0)
    await stage.send(commands.SetSandbox(on=False))
    await stage.say("and?")


NOTIFIED = [
    calls(
        ("notify", {"title": "Begun", "text": "It takes a while.", "urgency": "low"}), ("shell", {"command": "seq 3"})
    ),
    say("You were told."),
    say("That was all."),
]


async def thrifty(stage: Stage) -> None:
    """An answer takes more than was foreseen, the next one is refused; raised, the cap lets it go on. Then a kill."""
    await stage.begin(model="cheap")
    await stage.send(commands.SetBudget(money=120_000))
    await stage.say("one")
    await stage.say("two")
    await stage.send(commands.SetBudget(money=9_000_000))
    await stage.say("three")
    seen = stage.app.runtime.log.head(stage.session).seq
    process = await program(stage.home, "run", "-s", stage.session, "four")
    while not await at_work(stage, seen):  # noqa: ASYNC110 - another process is at it
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    process.kill()
    await process.wait()
    done = await program(stage.home, "resume", stage.session)
    assert await done.wait() == 0


def _used(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


THRIFTY = [
    say("That was long.", usage=_used(60_000, 20_000)),
    call("shell", command="echo once; exit 1", how={"usage": _used(1_000, 10)}),
    say("Done.", usage=_used(1_100, 10)),
    say("I think about it for a while.", delay=0.2),
    say("Done again.", usage=_used(1_200, 10)),
]


async def replaced(stage: Stage) -> None:
    """The model does not answer, another one takes over with its tools; the next turn is the first one's again."""
    await stage.begin()
    await stage.send(commands.SetRole(role="fallback", model="spoken-responses/m"))
    await stage.send(commands.SetRole(role="background", model="openai/other"))
    await stage.send(commands.SetRole(role="background", model=""))
    picture = ImageData(data=PIXEL, media="image/png", name="dot.png")
    await stage.say("do it")
    await stage.say("and now?")
    await stage.say("and with a picture?", files=(picture,))


# As often as it is tried, and then once more.
BUSY = fail(429, "slow down", headers={"retry-after": "0"})
REPLACED = [*[BUSY] * 5, call("shell", command="echo instead"), say("Done instead."), say("Back."), *[BUSY] * 5]


async def program(home: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        ROOT / ".venv" / "bin" / "sylph", *words, cwd=WORKSPACE, env=_environ(home),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


def _environ(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "SYLPH_HOME": str(home / "sylph"), "LANG": "C.UTF-8"}


@contextmanager
def places() -> Generator[Path, None, None]:
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    WORKSPACE.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sylph").mkdir(mode=0o700)
        yield Path(folder)
    shutil.rmtree(WORKSPACE)


async def undone(stage: Stage) -> None:
    (WORKSPACE / "a.txt").write_text("one\n")
    await stage.begin()
    await stage.say("change things")
    await stage.send(commands.Undo())
    await stage.say("and now?")
    await stage.send(commands.Undo(redo=True))
    await stage.send(commands.SetSandbox(on=False))
    await stage.open("run something long")
    await stage.see(lambda body: isinstance(body, signals.ToolOutput))
    await stage.send(commands.Interrupt(reason="enough"))
    await stage.settle()
    await stage.send(commands.Undo(turn="t1"))


UNDONE = [
    calls(
        ("shell", {"command": "echo two >> a.txt; mkdir d; ln -s a.txt d/l"}), ("write", {"path": "n", "content": ""})
    ),
    say("Changed."),
    say("They are gone."),
    call("shell", command="rm a.txt; echo begun; sleep 30"),
    say("Never said."),
]


async def dialects(stage: Stage) -> None:
    """One session in five dialects: each model goes on with what the others have done, and without their thoughts."""
    (WORKSPACE / "a.txt").write_text("one\ntwo\n")
    await stage.begin()
    for model in ("spoken-responses/m", "ollama/m", "anthropic/m", "google/m", "openai/big", "spoken-responses/m"):
        await stage.send(commands.SetModel(model=model))
        await stage.say(f"look again, {model}")


DIALECTS = [
    step
    for at in range(6)
    for step in (
        calls(("read", {"path": "a.txt"}), ("list", {}), text="I look. ", reasoning=f"Thought {at}.", encrypted="gAAA"),
        say(f"Seen {at}.", reasoning="Good."),
    )
]


@asynccontextmanager
async def staged(script: object) -> AsyncGenerator[Stage, None]:
    with places() as home:
        async with ModelServer(script, dialects=SPOKEN) as server:  # pyright: ignore[reportArgumentType] - one of its kinds of script
            (home / "sylph" / "config.toml").write_text(CONFIG.format(url=server.url, root=server.root))
            async with build_app(load_config(_environ(home))) as app:
                yield Stage(app, home)


async def record(name: str) -> None:
    story, script = STORIES[name]
    async with staged(script() if callable(script) else script) as stage:
        await story(stage)
        lines = [line async for line in stage.app.runtime.export_session(stage.session)]
    RECORDINGS.mkdir(exist_ok=True)
    (RECORDINGS / f"{name}.ndjson").write_bytes(b"".join(lines))
    print(f"{name}: {len(lines)} lines")


STORIES: dict[str, tuple[Story, object]] = {
    "tools": (tools, TOOLS),
    "approvals": (approvals, APPROVALS),
    "revoked": (revoked, REVOKED),
    "steering": (steering, STEERING),
    "stopped": (stopped, STOPPED),
    "paused": (paused, PAUSED),
    "troubled": (troubled, TROUBLED),
    "condensed": (condensed, condensed_script),
    "fork": (fork, FORK),
    "killed": (killed, KILLED),
    "undone": (undone, UNDONE),
    "notified": (notified, NOTIFIED),
    "thrifty": (thrifty, THRIFTY),
    "replaced": (replaced, REPLACED),
    "dialects": (dialects, DIALECTS),
}


async def main(names: list[str]) -> None:
    for name in names or STORIES:
        await record(name)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
