"""What was allowed for the rest of a session, seen and taken back through the server."""

import asyncio
from contextlib import aclosing

from tests.flows.program import Model, Sylph
from tests.http.served import serving
from tests.model_server import call, say
from tests.patience import PATIENCE

from sylph.app import App, build_app
from sylph.config import load_config
from sylph.core.commands import Answer, Send
from sylph.core.facts.tool_call import Asked
from sylph.core.facts.turn import TurnEnded
from sylph.engine.runtime.runtime import NewSession

API = "/api/v1"
WRITE = call("write", path="a.txt", content="a")


async def granted(app: App, sylph: Sylph) -> str:
    """A session in which a person allowed a tool for the rest of it."""
    new = NewSession(workspace=sylph.workspace, model="openai/scripted", sandbox=False)
    session = await app.runtime.create_session(new)
    await app.runtime.send(session, Send(text="write it"))
    async with asyncio.timeout(PATIENCE):
        async with aclosing(app.runtime.watch(session)) as watched:
            async for event in watched:
                if isinstance(event.body, Asked):
                    await app.runtime.send(session, Answer(id=event.body.id, answer="session"))
                if isinstance(event.body, TurnEnded):
                    break
        await app.runtime.wait_until_idle(session)
    return session


async def test_what_was_allowed_for_a_session_is_taken_back(sylph: Sylph, model: Model) -> None:
    await model([WRITE, WRITE, say("Written."), WRITE])
    async with build_app(load_config(sylph.env({}))) as app:
        session = await granted(app, sylph)
    async with serving(sylph) as served:
        (grant,) = (await served.client.get(f"{API}/policy/grants")).json()["items"]
        assert (grant["session"], grant["number"], grant["rule"]["tool"]) == (session, 1, "write")
        told = {"tool": "write", "arguments": {"path": "a.txt", "content": "a"}, "session": session}
        assert (await served.client.post(f"{API}/policy/explain", json=told)).json()["decision"] == "allow"
        assert (await served.client.delete(f"{API}/policy/grants/{session}/2")).status_code == 404
        assert (await served.client.delete(f"{API}/policy/grants/{session}/1")).status_code == 204
        assert (await served.client.delete(f"{API}/policy/grants/{session}/1")).status_code == 404
        assert (await served.client.get(f"{API}/policy/grants", params={"session": session})).json()["items"] == []
        assert (await served.client.post(f"{API}/policy/explain", json=told)).json()["decision"] == "ask"
        seen = await served.until(session, "grant.revoked")
        await served.say(session, "once more")
        assert (await served.until(session, "asked", after=int(seen[-1].id)))[-1].data["data"]["kind"] == "approval"
