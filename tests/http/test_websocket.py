"""The WebSocket: the same events, commands in, and what it says to those who speak wrongly."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio
from tests.flows.program import Sylph
from tests.http.follower import Talker, dial, logged, rested
from tests.http.served import Served, serving
from tests.model_server import Asked, ModelServer, Step, begin, call, say
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = pytest.mark.asyncio(loop_scope="module")


def script(asked: Asked) -> Step:
    text, last = asked.users[0], asked.json["messages"][-1]
    if "write" in text and last["role"] == "user":
        return call("shell", command="touch made")
    return begin("Slowly now. " * 40) if "slow" in text else say("Hello.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    home = tmp_path_factory.mktemp("websocket")
    for folder in ("work", "home/sylph"):
        (home / folder).mkdir(parents=True, mode=0o700)
    (home / "home/sylph/config.toml").write_text("probe = false\n")
    sylph = Sylph(home / "home", home / "work")
    async with ModelServer(script) as model:
        sylph.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="a-key-for-tests")
        async with serving(sylph) as running:
            yield running


async def made(served: Served, **body: str) -> str:
    return (await served.session(**{"model": "openai/scripted", **body}))["id"]


async def refused(served: Served, **how: Any) -> int:
    with pytest.raises(InvalidStatus) as error:
        async with dial(served, **how):
            pass
    return error.value.response.status_code


async def test_a_turn_is_asked_for_and_followed(served: Served) -> None:
    session = await made(served)
    async with dial(served) as socket:
        talk = Talker(socket)
        assert (await talk.hear("stream.opened"))["client"]
        assert (await talk.ask("subscribe", session=session))["seq"] == 1
        assert (await talk.hear("session.created"))["session"] == session
        assert (await talk.ask("send", session=session, text="hello", key="k"))["input"] == "i1"
        assert (await talk.hear("delta.text"))["data"]["text"]
        end = await talk.hear("turn.ended")
        assert (await talk.ask("send", session=session, text="hello", key="k"))["input"] == "i1"
        assert (await talk.ask("unsubscribe", session=session))["type"] == "ack"
    ends = await rested(served, session)
    assert end["hash"] in [hash for _, hash in await logged(served.sylph, session)]
    async with dial(served) as socket:
        talk = Talker(socket)
        await talk.ask("subscribe", session=session, after=ends[session] + 10)
        assert (await talk.hear("session.created"))["seq"] == 1


async def test_every_command_reaches_its_session(served: Served) -> None:
    session = await made(served, mode="ask")
    async with dial(served) as socket:
        talk = Talker(socket)
        assert await talk.ask("ping") == {"type": "pong", "id": "ping-1"}
        await talk.ask("subscribe", session=session)
        await talk.ask("rename", session=session, title="By socket")
        assert (await talk.ask("see", session=session, upto=1))["type"] == "ack"
        assert (await talk.hear("session.renamed"))["data"]["title"] == "By socket"
        await talk.ask("set_model", session=session, model="openai/scripted")
        await talk.hear("session.model")
        await talk.ask("send", session=session, text="write it")
        question = (await talk.hear("asked"))["data"]["id"]
        await talk.ask("answer", session=session, question=question, answer="no")
        await talk.hear("turn.ended")
        await talk.ask("set_mode", session=session, mode="plan")
        await talk.hear("session.mode")
        await talk.ask("send", session=session, text="slow")
        await talk.hear("delta.text")
        await talk.ask("send", session=session, text="and then", delivery="follow")
        waiting = (await talk.hear("input.received", turn="t2"))["data"]["id"]
        assert (await talk.ask("withdraw", session=session, input=waiting))["type"] == "ack"
        assert (await talk.ask("pause", session=session))["type"] == "ack"
        assert (await talk.ask("resume", session=session))["type"] == "ack"
        assert (await talk.ask("interrupt", session=session))["type"] == "ack"
        assert (await talk.hear("turn.ended"))["data"]["outcome"] == "cancelled"
        await rested(served, session)
        assert (await talk.ask("retry", session=session, text="hello"))["input"]
        assert (await talk.hear("turn.ended"))["data"]["outcome"] == "finished"
        assert (await talk.ask("compact", session=session))["type"] in ("ack", "problem")


async def test_all_sessions_are_told_of_when_wanted(served: Served) -> None:
    async with dial(served) as socket:
        talk = Talker(socket)
        await talk.ask("notes", on=True)
        session = await made(served, title="Noted")
        assert (await talk.hear("session.changed", id=session))["title"] == "Noted"
        assert (await talk.ask("notes", on=False))["type"] == "ack"


async def test_a_command_needs_its_scope(served: Served) -> None:
    session = await made(served)
    made_ = await served.sylph.run("token", "create", "reader", "--scope", "read", "--json")
    async with dial(served, made_.json["token"]) as socket:
        talk = Talker(socket)
        assert (await talk.ask("subscribe", session=session))["type"] == "ack"
        for type, what in (
            ("send", {"text": "x"}),
            ("answer", {"question": "q", "answer": "yes"}),
            ("set_mode", {"mode": "trust"}),
        ):
            problem = (await talk.ask(type, session=session, **what))["problem"]
            assert (problem["status"], problem["kind"]) == (403, "forbidden")
    chat = await served.sylph.run("token", "create", "talker", "--scope", "read", "--scope", "chat", "--json")
    async with dial(served, chat.json["token"]) as socket:
        talk = Talker(socket)
        assert (await talk.ask("set_mode", session=session, mode="plan"))["type"] == "ack"
        assert (await talk.ask("set_mode", session=session, mode="trust"))["problem"]["status"] == 403


async def test_the_form_of_messages_is_told(served: Served) -> None:
    told = (await served.bare.get("/api/v1/stream/schema")).json()
    for side, types in (("heard", {"send", "answer", "subscribe", "ping"}), ("said", {"ack", "stream.opened"})):
        known = {shape["properties"]["type"]["enum"][0] for shape in told[side]["$defs"].values() if _tagged(shape)}
        assert types <= known


def _tagged(shape: dict[str, Any]) -> bool:
    return "enum" in shape.get("properties", {}).get("type", {})


async def test_nobody_comes_in_without_a_credential_or_from_a_foreign_page(served: Served) -> None:
    assert await refused(served, token="sylph_wrong") == 401
    assert await refused(served, origin="https://evil.example") == 403
    assert await refused(served, headers={"Host": "evil.example"}) in (400, 403, 421)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("{", "bad_message"),
        ("[]", "bad_message"),
        ('{"type": "dance", "id": "7"}', "bad_message"),
        ('{"type": "send", "id": "7", "session": "x", "text": 5}', "bad_message"),
        ('{"type": "send", "id": "7", "session": "x", "text": "hi", "more": 1}', "bad_message"),
        (b"\xff\xfe", "bad_message"),
        ("[" * 100_000, "bad_message"),
        ('{"type": "send", "id": "7", "session": "none", "text": "hi"}', "not_found"),
        ('{"type": "subscribe", "id": "7", "session": "none"}', "not_found"),
        ('{"type": "subscribe", "id": "7", "session": "none", "after": -1}', "bad_message"),
    ],
)
async def test_what_cannot_be_done_is_answered(served: Served, message: str | bytes, kind: str) -> None:
    async with dial(served) as socket:
        talk = Talker(socket)
        await socket.send(message)
        said = await talk.hear("problem")
        assert said["problem"]["kind"] == kind
        assert said["id"] == ("7" if '"7"' in str(message) else "")
        assert (await talk.ask("ping"))["type"] == "pong"


async def test_who_says_nothing_that_can_be_read_is_hung_up_on(served: Served) -> None:
    async with dial(served) as socket:
        talk = Talker(socket)
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(40):
                await socket.send("nonsense")
                await asyncio.sleep(0.005)
            await talk.hear("never")
        assert closed.value.rcvd and closed.value.rcvd.code == 1008


async def test_a_message_that_is_too_long_ends_the_connection(served: Served) -> None:
    async with dial(served) as socket:
        talk = Talker(socket)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.send("x" * (2**20 + 1))
            await talk.hear("never")
        assert closed.value.rcvd and closed.value.rcvd.code == 1009
    assert (await served.bare.get("/api/v1/health/live")).status_code == 200


async def test_more_sessions_than_one_client_may_follow_are_refused(served: Served) -> None:
    session = await made(served)
    forks = [session]
    for _ in range(50):
        forks.append(await made(served))
    async with dial(served) as socket:
        talk = Talker(socket)
        said = [await talk.ask("subscribe", session=each, after=1) for each in forks]
    assert [each["type"] for each in said] == ["ack"] * 50 + ["problem"]
    assert said[-1]["problem"]["kind"] == "too_many_sessions"


async def test_a_session_is_named_by_the_beginning_of_its_id_and_as_the_last(served: Served) -> None:
    session = await made(served)
    async with dial(served) as socket:
        talk = Talker(socket)
        for name in (session[:9], "last"):
            assert (await talk.ask("subscribe", session=name))["session"] == session
            assert (await talk.ask("rename", session=name, title=name))["session"] == session
            assert (await talk.ask("unsubscribe", session=name))["session"] == session
        refused = await talk.ask("subscribe", session="nobody")
        assert refused["problem"]["kind"] == "not_found"
