"""What streams tell, and what they say to those who ask wrongly."""

import asyncio
import math
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from tests.flows.program import Sylph
from tests.http.follower import Follower, logged, rested
from tests.http.served import Served, Told, serving
from tests.http.tap import Tap
from tests.model_server import Asked, ModelServer, Step, call, say
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
# More than what fits between the server and a client that does not read: the kernel's buffers and the reader's inbox.
CHUNK = 4000
LARGE = "All work and no play makes a dull boy. " * 300_000


def script(asked: Asked) -> Step:
    text, last = asked.users[0], asked.json["messages"][-1]
    if "write" in text and last["role"] == "user":
        return call("shell", command="touch made")
    if "much" in text:
        return say(LARGE, chunk=CHUNK)
    return say("Hello, this is what I have to say.", delay=0.002)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    home = tmp_path_factory.mktemp("streams")
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


async def opened(served: Served, path: str, *, last: str = "", gulp: int = 65_536) -> Tap:
    headers = {"Authorization": f"Bearer {served.token}", **({"Last-Event-ID": last} if last else {})}
    tap = await Tap.open(served.url, path, headers, gulp)
    assert " 200 " in tap.head, tap.head
    return tap


async def heard(tap: Tap, type: str, **data: object) -> Told:
    """The next event of a type in which this is so."""
    async with asyncio.timeout(PATIENCE):
        async for event in tap.events():
            if event.type == type and all(event.data.get(name) == value for name, value in data.items()):
                return event
    raise AssertionError(f"The stream ended without {type}.")


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "٣", "9" * 400, "1;2"])
async def test_a_place_that_is_none_is_refused(served: Served, wrong: str) -> None:
    session = await made(served)
    for path in (f"/api/v1/sessions/{session}/events", "/api/v1/stream"):
        refused = await served.client.get(path, headers={b"Last-Event-ID": wrong.encode()})
        assert (refused.status_code, refused.json()["kind"]) == (400, "bad_cursor")
        assert refused.json()["next"]


async def test_too_many_sessions_are_refused(served: Served) -> None:
    refused = await served.client.get("/api/v1/stream?sessions=" + ",".join(f"s{n}" for n in range(51)))
    assert (refused.status_code, refused.json()["kind"]) == (400, "too_many_sessions")
    assert (await served.client.get("/api/v1/stream?sessions=a,,b")).json()["kind"] == "bad_cursor"


async def test_a_session_that_is_not_there_is_a_404(served: Served) -> None:
    assert (await served.client.get("/api/v1/sessions/none/events")).status_code == 404
    assert (await served.bare.get("/api/v1/stream")).status_code == 401


async def test_the_header_goes_before_the_parameter(served: Served) -> None:
    session = await made(served)
    await served.say(session, "hello")
    await rested(served, session)
    tap = await opened(served, f"/api/v1/sessions/{session}/events?after=1", last="3")
    assert [event.id async for event in _some(tap, 2)] == ["4", "5"]
    tap = await opened(served, f"/api/v1/sessions/{session}/events?after=1")
    assert [event.id async for event in _some(tap, 2)] == ["2", "3"]


async def _some(tap: Tap, count: int) -> AsyncGenerator[Told, None]:
    async for event in tap.events():
        yield event
        count -= 1
        if not count:
            break
    tap.cut()


async def test_a_place_ahead_of_the_log_is_told_and_all_of_it_follows(served: Served) -> None:
    session = await made(served)
    tap = await opened(served, f"/api/v1/sessions/{session}/events", last="99")
    first, second = [event async for event in _some(tap, 2)]
    assert (first.type, first.data["after"], first.data["seq"]) == ("stream.reset", 99, 1)
    assert (second.type, second.id) == ("session.created", "1")
    tap = await opened(served, "/api/v1/stream", last=f"{session}:99;nobody:3@0")
    told = [event async for event in _some(tap, 4)]
    assert [event.type for event in told] == ["stream.opened", "stream.reset", "stream.gone", "session.created"]
    assert told[0].data["sessions"] == {session: 0}
    assert told[2].data["session"] == "nobody"
    assert told[3].id.startswith(f"{session}:1@")


async def test_one_stream_tells_of_all_sessions_and_everything_of_some(served: Served) -> None:
    one, other = await made(served, title="One"), await made(served, title="Other")
    tap = await opened(served, f"/api/v1/stream?sessions={one}")
    await heard(tap, "session.created", session=one)
    new = await made(served, title="New")
    assert (await heard(tap, "session.changed", id=new)).data["title"] == "New"
    await served.say(other, "hello")
    seen: list[Told] = []
    async with asyncio.timeout(PATIENCE):
        async for event in tap.events():
            seen.append(event)
            if event.data.get("id") == other and (event.data["turns"], event.data["state"]) == (1, "idle"):
                break
    assert not [event for event in seen if event.data.get("session") == other]
    # A turn of twenty facts makes a few notes.
    assert len([event for event in seen if event.data.get("id") == other]) < 8
    await served.say(one, "hello")
    assert (await heard(tap, "delta.text", session=one)).data["data"]["text"]
    tap.cut()


async def test_whoever_comes_back_is_told_what_changed_meanwhile(served: Served) -> None:
    session, other = await made(served), await made(served, title="Before")
    tap = await opened(served, f"/api/v1/stream?sessions={session}")
    await served.sylph.run("session", "rename", other, "Meanwhile")
    told = await heard(tap, "session.changed", id=other, title="Meanwhile")
    tap.cut()
    assert told.id.startswith(f"{session}:1@")
    new = await made(served, title="While away")
    tap = await opened(served, "/api/v1/stream", last=told.id)
    assert (await heard(tap, "session.changed", id=new)).data["title"] == "While away"
    tap.cut()


async def test_a_question_is_told_to_everybody_who_looks_at_all_sessions(served: Served) -> None:
    session = await made(served, mode="ask")
    before = await opened(served, "/api/v1/stream")
    await served.say(session, "write")
    async with asyncio.timeout(PATIENCE):
        async for event in before.events():
            if event.data.get("id") == session and event.data.get("questions"):
                break
    before.cut()
    # Also to who comes when it was asked long ago.
    after = await opened(served, "/api/v1/stream")
    (question,) = (await heard(after, "session.changed", id=session)).data["questions"]
    assert question["kind"] == "approval"
    assert "touch made" in question["question"] + question["detail"]
    after.cut()


async def test_an_open_stream_follows_other_sessions_when_told_to(served: Served) -> None:
    one, other = await made(served), await made(served)
    tap = await opened(served, f"/api/v1/stream?sessions={one}")
    client = (await heard(tap, "stream.opened")).data["client"]
    path = f"/api/v1/stream/{client}"
    changed = await served.client.post(path, json={"sessions": [{"id": other}, {"id": "nobodynobody"}]})
    assert changed.json()["sessions"] == {other: 0}
    assert (await heard(tap, "stream.gone")).data["session"] == "nobodynobody"
    refused = await served.client.post(path, json={"sessions": [{"id": "nobody"}]})
    assert (refused.status_code, refused.json()["kind"]) == (404, "not_found")
    told = await heard(tap, "stream.subscribed")
    assert told.data["sessions"] == {other: 0}
    # What is given back after a cut is what is followed now, whatever the address says.
    assert told.id.startswith(f"{other}:0@")
    await served.say(other, "hello")
    assert (await heard(tap, "turn.ended")).data["session"] == other
    tap.cut()
    assert (await served.client.post(path, json={"sessions": [{"id": "x"}] * 51})).status_code == 400

    async def gone() -> bool:
        refused = await served.client.post(path, json={"sessions": []})
        return (refused.status_code, refused.json().get("kind")) == (404, "not_found")

    await eventually(gone, "the end of a stream that was cut")


async def test_nobody_changes_the_stream_of_somebody_else(served: Served) -> None:
    other = (await served.sylph.run("token", "create", "other", "--scope", "read", "--json")).json["token"]
    tap = await opened(served, "/api/v1/stream")
    client = (await heard(tap, "stream.opened")).data["client"]
    headers = {"Authorization": f"Bearer {other}"}
    refused = await served.bare.post(f"/api/v1/stream/{client}", json={"sessions": []}, headers=headers)
    assert refused.status_code == 404
    tap.cut()


async def test_what_another_process_writes_is_told_as_well(served: Served) -> None:
    session = await made(served)
    tap = await opened(served, f"/api/v1/sessions/{session}/events")
    assert (await served.sylph.run("session", "rename", session, "From elsewhere")).code == 0
    assert (await heard(tap, "session.renamed")).data["data"]["title"] == "From elsewhere"
    tap.cut()


async def test_a_session_removed_for_good_ends_its_stream(served: Served) -> None:
    session = await made(served)
    one, all = await opened(served, f"/api/v1/sessions/{session}/events"), await opened(served, "/api/v1/stream")
    assert (await served.sylph.run("session", "delete", session, "--forever", "--yes")).code == 0
    assert (await heard(all, "session.removed")).data["id"] == session
    all.cut()
    assert (await heard(one, "stream.gone")).data["session"] == session
    assert [event async for event in one.events()] == []
    one.cut()


async def test_a_changed_configuration_is_told_whoever_changed_it(served: Served) -> None:
    all = await opened(served, "/api/v1/stream")
    changed = await served.client.patch("/api/v1/config", json={"set": {"limits.rounds": 7}})
    assert changed.status_code == 200
    await heard(all, "config.changed")
    file = served.sylph.home / "sylph" / "config.toml"
    file.write_text(file.read_text() + "\nnonsense = 1\n")
    await heard(all, "config.changed")
    assert "nonsense" in (await served.client.get("/api/v1/config")).json()["trouble"]
    all.cut()


async def test_six_tabs_leave_room_for_requests(served: Served) -> None:
    sessions = [await made(served) for _ in range(6)]
    tabs = [await opened(served, f"/api/v1/stream?sessions={','.join(sessions)}") for _ in range(6)]
    await asyncio.gather(*(served.say(session, "hello") for session in sessions))
    for tab in tabs:
        ended = set[str]()
        async with asyncio.timeout(PATIENCE):
            async for event in tab.events():
                ended |= {event.data["session"]} if event.type == "turn.ended" else set()
                if len(ended) == 6:
                    break
        tab.cut()


async def test_a_client_that_does_not_read_holds_up_nobody_and_gets_the_facts_later(served: Served) -> None:
    session = await made(served)
    path = f"/api/v1/sessions/{session}/events"
    slow = await opened(served, path, gulp=16_384)
    slow.pause()
    quick = Follower(path)
    quick.enough = lambda: quick.told[-1].type == "turn.ended"
    reading = asyncio.create_task(quick.read(served))
    await served.say(session, "much")
    await reading
    ends = await rested(served, session)
    slow.resume()
    late = Follower(path)
    async with asyncio.timeout(PATIENCE):
        async for event in slow.events():
            late.take(event)
            if event.data["seq"] == ends[session]:
                break
    slow.cut()
    assert _missed(late) > 0
    for follower in (quick, late):
        shown = sum(told.type == "delta.text" for told in follower.told)
        assert shown + _missed(follower) == math.ceil(len(LARGE) / CHUNK)
        assert follower.facts[session] == (await logged(served.sylph, session))[: len(follower.facts[session])]
    assert late.facts[session][-1][0] == ends[session]


def _missed(follower: Follower) -> int:
    return sum(told.data["data"]["missed"] for told in follower.told if told.type == "lagged")


async def test_a_session_is_followed_by_the_beginning_of_its_id_and_as_the_last(served: Served) -> None:
    session = await made(served)
    for name in (session[:9], "last"):
        tap = await opened(served, f"/api/v1/stream?sessions={name}")
        assert (await heard(tap, "stream.opened")).data["sessions"] == {session: 0}
        assert (await heard(tap, "session.created")).data["session"] == session
        tap.cut()
    refused = await served.client.get("/api/v1/stream?sessions=nobody")
    assert (refused.status_code, refused.json()["kind"]) == (404, "not_found")
