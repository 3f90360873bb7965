"""A server for all tests of a module, whose model answers by what it is told; and the official client at it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from openai import AsyncOpenAI
from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import Asked, ModelServer, Step, begin, call, fail, say

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def answer(asked: Asked, gate: asyncio.Event) -> Step:  # noqa: PLR0911 - one flat table
    """Repeats what it is told, unless that orders something else."""
    words = [text for text in asked.users if not text.startswith("<context")]
    said = words[0]
    results = sum(item.get("role") == "tool" for item in asked.json["messages"])
    match said.rpartition("\n")[2].partition(" ")[0]:
        case "write" if not results:
            return call("write", how={"text": "I write it."}, path="made.txt", content="made")
        case "look" if not results:
            return call("bash", how={"text": "I look."}, command="sleep 0.2; ls")
        case "halting":
            return say(NUMBERS, hold=gate, at="stream")
        case "endless":
            return begin(NUMBERS)
        case "limited":
            return fail(429, "Too fast.", headers={"retry-after": "9999"})
        case "long":
            return say("cut o", finish="length")
        case "filtered":
            return say("", finish="content_filter")
        case _:
            return say(f"You said {said.rpartition(chr(10))[2]!r}, message {len(words)}.", usage=USAGE)


NUMBERS = "one two three four five six seven eight"
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}


@dataclass
class Talk:
    """`gate` is what a halting answer waits for after its first half."""

    served: Served
    model: ModelServer
    client: AsyncOpenAI
    gate: asyncio.Event
    others: list[AsyncOpenAI] = field(default_factory=list[AsyncOpenAI])

    def another(self, token: str) -> AsyncOpenAI:
        self.others.append(AsyncOpenAI(base_url=f"{self.served.url}/v1", api_key=token, max_retries=0))
        return self.others[-1]

    async def token(self, *scopes: str) -> str:
        wanted = [part for scope in scopes for part in ("--scope", scope)]
        return (await self.served.sylph.run("token", "create", "other", *wanted, "--json")).json["token"]


@asynccontextmanager
async def talking(path: Path) -> AsyncGenerator[Talk, None]:
    workspace, home = path / "work", path / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text('probe = false\nmodel = "openai/scripted"\n')
    sylph = Sylph(home, workspace)
    gate = asyncio.Event()
    async with ModelServer(lambda asked: answer(asked, gate)) as model:
        sylph.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="a-key-for-tests")
        async with serving(sylph) as served:
            client = AsyncOpenAI(base_url=f"{served.url}/v1", api_key=served.token, max_retries=0)
            talk = Talk(served, model, client, gate)
            yield talk
            for each in (client, *talk.others):
                await each.close()
