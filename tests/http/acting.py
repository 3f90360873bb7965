"""A model that does as it is told, and one server for a module of tests.

`call NAME {"argument": …}` makes it call a tool, `calls [[NAME, {…}], …]` several at once; everything else is repeated.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import Asked, ModelServer, Step, call, calls, say
from tests.patience import eventually

from sylph.core.ids import new_id

API = "/api/v1"
MODEL = "openai/scripted"


def script(asked: Asked) -> Step:
    items: list[dict[str, Any]] = asked.json["messages"]
    text = asked.users[0]
    if not asked.json.get("tools"):
        return (
            say("no")
            if b"not to be summarised" in asked.body
            else say("A summary of what was said and done so far, in a few plain words.")
        )
    if items[-1].get("role") != "user":
        return say("Done.")
    if text.startswith("call "):
        _, name, arguments = text.split(" ", 2)
        return call(name, **json.loads(arguments))
    if text.startswith("calls "):
        return calls(*((name, arguments) for name, arguments in json.loads(text[6:])))
    used = len(asked.body) // 4
    return say(f"Heard: {text}", usage={"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5})


@asynccontextmanager
async def acting(folder: Path) -> AsyncGenerator[Served, None]:
    workspace, home = folder / "work", folder / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text(f'probe = false\nmodel = "{MODEL}"\n')
    async with ModelServer(script) as model:
        sylph = Sylph(home, workspace, {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "a-key-for-tests"})
        async with serving(sylph) as served:
            yield served


def running(words: str) -> bool:
    """Whether a command with these words in its command line runs anywhere on this machine."""
    return any(words.encode() in _line(path) for path in Path("/proc").glob("[0-9]*/cmdline"))


def _line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def runs(words: str) -> None:
    """Returns when such a command runs."""
    await eventually(lambda: running(words), f"a command with {words!r}")


class Client:
    """Requests to one server, in few words. `None` for what has no body."""

    def __init__(self, served: Served, own: dict[str, str] | None = None) -> None:
        self.served, self._own = served, own or {}

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        sent = {} if body is None else {"json": body}
        return await self.served.client.request(method, API + path, headers={**self._own, **headers}, **sent)

    async def get(self, path: str) -> Any:
        answer = await self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: Any = None, **headers: str) -> Any:
        answer = await self.ask("POST", path, body, **headers)
        assert answer.status_code in (200, 201, 202), answer.text
        return answer.json()

    async def refused(self, method: str, path: str, status: int, body: Any = None, **headers: str) -> dict[str, Any]:
        """The problem that a request is answered with."""
        answer = await self.ask(method, path, body, **headers)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == status
        assert problem["kind"]
        assert problem["detail"]
        return problem

    async def begin(self, text: str = "", **how: Any) -> str:
        """A new session, and what is said in it first; returns when that is kept."""
        session = (await self.post("/sessions", how))["id"]
        if text:
            await self.post(f"/sessions/{session}/messages", {"text": text})
        return session

    async def until(self, session: str, **wanted: Any) -> dict[str, Any]:
        """How a session stands as soon as it stands like this."""

        async def seen() -> dict[str, Any] | None:
            found = await self.get(f"/sessions/{session}")
            return found if all(found[name] == value for name, value in wanted.items()) else None

        return await eventually(seen, f"a session that is {wanted}")

    async def done(self, session: str, turns: int = 1) -> dict[str, Any]:
        return await self.until(session, state="idle", turns=turns, open_turn="", queued=0)

    async def asked(self, session: str) -> dict[str, Any]:
        """What it asks."""

        async def questions() -> list[dict[str, Any]]:
            return (await self.get(f"/sessions/{session}/questions"))["items"]

        return (await eventually(questions, "a question"))[0]

    async def token(self, *scopes: str) -> "Client":
        """Somebody with a credential of their own."""
        made = await self.post("/keys", {"name": new_id(), "scopes": scopes})
        return Client(self.served, {"Authorization": f"Bearer {made['token']}"})
