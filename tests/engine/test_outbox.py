"""Messages to people: recorded before they are sent, sent beside the turn, confirmed or given up where all can see."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from tests.engine.stage import Props, bodies, seen, story
from tests.patience import eventually

from sylph.core import commands, facts
from sylph.core.clock import SystemClock
from sylph.core.errors import ErrorReport, UserError
from sylph.core.events import Event
from sylph.core.facts.delivery import (
    DOOR_CHANNEL,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryError,
    DeliveryFailed,
    DeliveryRecorded,
    NotificationOccasion,
    delivery_key,
)
from sylph.core.plugin import Plugin
from sylph.diagnosis.checks import diagnose_session
from sylph.diagnosis.finding import LiveSessionInfo
from sylph.engine.log.store import EventLog
from sylph.engine.model.gateway import ModelGateway
from sylph.engine.model.retry import RetryPolicy
from sylph.engine.runtime.runtime import Runtime, RuntimeParts
from sylph.engine.turn import outbox
from sylph.testing import ScriptedProvider, ScriptLine, begin_session, call_tool, call_tools, play_turn, say
from sylph.tools.notify import NOTIFY

TELL = call_tool("notify", title="Done", text="All is well.", urgency="high")
DOWN = DeliveryError(ErrorReport("network", "Nothing answers."))
REFUSED = DeliveryError(ErrorReport("refused", "They do not want it."), final=True)


class Pigeon:
    """A courier whose flights end as told; one that is told nothing never ends."""

    seconds: float | None = 0.5

    def __init__(self, *flights: DeliveryError | Exception | str, ways: Sequence[str] = ("web",), on: str = "") -> None:
        self.flights, self.ways, self.on = list(flights), ways, on
        self.taken: list[str] = []
        self.off = asyncio.Event()

    def channels(self, why: NotificationOccasion, name: str) -> Sequence[str]:  # noqa: ARG002 - whatever it is about
        return (DOOR_CHANNEL, *self.ways) if why == "notify" or why in self.on else ()

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:
        self.taken.append(delivery_key(session, parcel))
        self.off.set()
        flight = self.flights.pop(0) if self.flights else "for ever"
        if isinstance(flight, Exception):
            raise flight
        if flight != "arrives":
            await asyncio.Event().wait()


def engine(home: Path, pigeon: Pigeon, lines: Iterable[ScriptLine], props: Props | None = None) -> Runtime:
    tools = (*(props or Props()).tools, NOTIFY)
    parts = RuntimeParts(
        gateway=ModelGateway({"scripted": ScriptedProvider(lines)}, RetryPolicy(base=0.001)),
        plugins=(Plugin(name="tools", tools=tools),),
        courier=pigeon,
    )
    return Runtime(EventLog.open(home / "data" / "sylph.db"), parts)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PAUSES", (0.05, 0.02, 0.02, 0.02, 0.02))


async def sent(runtime: Runtime, session: str) -> None:
    """Waits until nothing waits to be delivered any more."""

    async def empty() -> bool:
        return not (await runtime.find_session(session)).outbox

    await eventually(empty, "an empty outbox")


def flights(events: Iterable[Event]) -> list[str]:
    """What became of the deliveries, in short."""
    kinds = (DeliveryRecorded, DeliveryAttempted, DeliveryConfirmed, DeliveryFailed)
    return [f"{event.type.partition('.')[2]} {event.body.id}" for event in events if isinstance(event.body, kinds)]


async def test_with_no_way_set_up_a_notice_is_recorded_shown_and_confirmed_at_once(home: Path) -> None:
    async with engine(home, Pigeon(ways=()), [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        events = await play_turn(runtime, session, "tell me")
    assert flights(events) == ["recorded t1_c1.door", "confirmed t1_c1.door"]
    (result,) = bodies(events, facts.ToolFinished)
    assert (result.ok, result.output) == (True, "It is shown where this session is watched.")


async def test_a_notice_is_sent_on_every_way_under_a_key_of_its_own(home: Path) -> None:
    pigeon = Pigeon("arrives", "arrives", ways=("web", "bell"))
    async with engine(home, pigeon, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await runtime.wait_for_deliveries()
        events = await story(runtime, session)
    assert sorted(pigeon.taken) == [f"{session}.t1_c1.bell", f"{session}.t1_c1.web"]
    assert sorted(flights(events)[-4:]) == sorted(
        [f"{what} t1_c1.{way}" for what in ("attempted", "confirmed") for way in ("web", "bell")]
    )
    (recorded,) = [body for body in bodies(events, DeliveryRecorded) if body.channel == "web"]
    assert (recorded.title, recorded.text, recorded.urgency, recorded.call) == ("Done", "All is well.", "high", "t1_c1")


async def test_what_does_not_arrive_is_tried_again_and_the_turn_does_not_wait(home: Path) -> None:
    pigeon = Pigeon(DOWN, RuntimeError("a bug"), "arrives")
    async with engine(home, pigeon, [TELL, say("Told."), say("Once more.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await play_turn(runtime, session, "and now?")
        await sent(runtime, session)
        events = await story(runtime, session)
    failed = bodies(events, DeliveryFailed)
    assert [(one.attempt, one.trouble.kind, one.retry_ms) for one in failed] == [(1, "network", 50), (2, "bug", 20)]
    assert bodies(events, DeliveryConfirmed)[-1] == DeliveryConfirmed(id="t1_c1.web", attempt=3)
    assert len(set(pigeon.taken)) == 1


@pytest.mark.parametrize(("flights_", "tries"), [([DOWN] * 9, 6), ([REFUSED], 1)])
async def test_it_is_given_up_where_everybody_can_see_it(home: Path, flights_: list[DeliveryError], tries: int) -> None:
    async with engine(home, Pigeon(*flights_), [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await sent(runtime, session)
        events = await story(runtime, session)
    last = bodies(events, DeliveryFailed)[-1]
    assert (last.attempt, last.retry_ms) == (tries, None)


async def test_one_that_stalls_is_cut_off_after_a_while(home: Path) -> None:
    pigeon = Pigeon("stalls", "arrives")
    pigeon.seconds = 0.02
    async with engine(home, pigeon, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await sent(runtime, session)
        events = await story(runtime, session)
    assert [one.trouble.kind for one in bodies(events, DeliveryFailed)] == ["timeout"]


async def test_what_was_on_its_way_when_the_process_died_is_sent_again_under_the_same_key(home: Path) -> None:
    first, second = Pigeon("stalls"), Pigeon("arrives")
    first.seconds = None
    async with engine(home, first, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await first.off.wait()
    async with engine(home, second, []) as runtime:
        await runtime.send(session, commands.Continue())
        await runtime.wait_until_idle(session)
        await runtime.wait_for_deliveries()
        events = await story(runtime, session)
        with pytest.raises(UserError, match="no open turn"):
            await runtime.send(session, commands.Continue())
    assert first.taken == second.taken == [f"{session}.t1_c1.web"]
    assert flights(events)[-3:] == ["attempted t1_c1.web", "attempted t1_c1.web", "confirmed t1_c1.web"]


async def test_the_next_turn_of_another_process_sends_what_waits(home: Path) -> None:
    first, second = Pigeon("stalls"), Pigeon("arrives")
    first.seconds = None
    async with engine(home, first, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await first.off.wait()
    async with engine(home, second, [call_tool("much"), say("Yes?")]) as runtime:
        await play_turn(runtime, session, "are you there?")
        await runtime.wait_for_deliveries()
        events = await story(runtime, session)
    assert flights(events)[-1] == "confirmed t1_c1.web"


async def test_a_turn_that_is_resumed_sends_what_was_recorded_before(home: Path) -> None:
    first, second, props = Pigeon("stalls"), Pigeon("arrives"), Props()
    first.seconds = None
    async with engine(home, first, [call_tools(("notify", {"title": "x"}), ("peek", {}))], props) as runtime:
        session = await begin_session(runtime, home)
        await runtime.send(session, commands.Send(text="go"))
        await props.began.wait()
        await first.off.wait()
    props.go.set()
    async with engine(home, second, [say("Done.")], props) as runtime:
        events = await play_turn(runtime, session, commands.Continue())
        await runtime.wait_for_deliveries()
        events = await story(runtime, session)
    assert flights(events)[-2:] == ["attempted t1_c1.web", "confirmed t1_c1.web"]
    assert second.taken == first.taken


async def test_what_kills_its_sender_each_time_is_given_up_in_the_end(home: Path) -> None:
    async with engine(home, Pigeon(), [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
    for _ in range(outbox.TRIES):
        pigeon = Pigeon()
        async with engine(home, pigeon, []) as runtime:
            before = (await runtime.find_session(session)).seq
            await runtime.send(session, commands.Continue())
            kinds = DeliveryFailed | DeliveryAttempted
            await seen(runtime, session, kinds, after=before)  # pyright: ignore[reportArgumentType]
    async with engine(home, Pigeon(), []) as runtime:
        events = await story(runtime, session)
    last = bodies(events, DeliveryFailed)[-1]
    assert (last.trouble.kind, last.attempt, last.retry_ms) == ("interrupted", outbox.TRIES, None)


async def test_a_person_who_wants_to_know_is_called_when_they_are_asked_and_when_it_is_over(home: Path) -> None:
    pigeon = Pigeon("arrives", "arrives", on="asked ended")
    async with engine(home, pigeon, [call_tool("ask", text="Which?"), say("The blue one.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "choose")
        await runtime.wait_for_deliveries()
        events = await story(runtime, session)
    recorded = [(one.id, one.title, one.text) for one in bodies(events, DeliveryRecorded) if one.channel == "web"]
    assert recorded == [
        ("t1_q1.web", "Sylph asks: Which?", ""),
        ("t1.web", "Sylph finished: choose", "The blue one."),
    ]
    assert len(pigeon.taken) == 2


async def test_a_dry_run_sends_nothing(home: Path) -> None:
    pigeon = Pigeon()
    async with engine(home, pigeon, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        events = await play_turn(runtime, session, commands.Send(text="tell me", dry_run=True))
    assert flights(events) == ["recorded t1_c1.door", "confirmed t1_c1.door"]


async def test_a_fork_and_a_deleted_session_send_nothing_more(home: Path) -> None:
    pigeon = Pigeon("stalls")
    async with engine(home, pigeon, [TELL, say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await pigeon.off.wait()
        fork = await runtime.fork_session(session)
        await runtime.send(session, commands.Delete())
        (deleted,) = await runtime.list_sessions(deleted=True)
        assert (await runtime.find_session(fork)).outbox == deleted.outbox == {}
        await runtime.send(session, commands.Restore())
    assert len(pigeon.taken) == 1


async def test_nobody_else_gets_the_session_while_something_is_on_its_way(home: Path) -> None:
    pigeon = Pigeon("stalls")
    pigeon.seconds = 3.0
    async with engine(home, pigeon, [TELL, say("Told.")]) as runtime, engine(home, Pigeon(), []) as other:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await pigeon.off.wait()
        with pytest.raises(UserError, match="another Sylph"):
            await other.send(session, commands.Continue())
        await runtime.send(session, commands.Rename(title="told"))
        await runtime.wait_for_deliveries()
        await other.send(session, commands.Rename(title="free"))


async def test_a_message_that_comes_while_something_is_sent_begins_its_turn(home: Path) -> None:
    pigeon = Pigeon(DOWN, DOWN, DOWN, "arrives")
    lines = [TELL, *(say(f"{number}") for number in range(8))]
    async with engine(home, pigeon, lines) as runtime:
        session = await begin_session(runtime, home)
        for number in range(8):
            await play_turn(runtime, session, f"message {number}")
            await asyncio.sleep(0.007)
        await runtime.wait_for_deliveries()


async def test_a_clock_that_is_set_back_does_not_hold_a_delivery_up(home: Path) -> None:
    pigeon = Pigeon(DOWN, "arrives")
    made = engine(home, pigeon, [TELL, say("Told.")])

    class Back(SystemClock):
        def now(self) -> int:
            return super().now() - (86_400_000 if pigeon.taken else 0)

    async with Runtime(made.log, made.parts, Back()) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await sent(runtime, session)


async def test_a_diagnosis_tells_what_was_not_delivered_and_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # There is no second try while anybody looks.
    monkeypatch.setattr(outbox, "PAUSES", (3600.0,))
    pigeon = Pigeon(REFUSED, DOWN, ways=("web",))
    async with engine(home, pigeon, [TELL, call_tool("notify", title="Second"), say("Told.")]) as runtime:
        session = await begin_session(runtime, home)
        await play_turn(runtime, session, "tell me")
        await runtime.wait_for_deliveries()
    async with engine(home, Pigeon(), []) as runtime:
        events = await story(runtime, session)
    found = [one for one in diagnose_session(session, events, LiveSessionInfo()) if one.check == "deliveries"]
    assert [(one.state, one.message, one.next) for one in found] == [
        ("warn", "'Done' by web was given up: They do not want it.", (f"sylph session show {session}",)),
        (
            "warn",
            "'Second' by web was not delivered yet, tried 1 time: Nothing answers.",
            (f"sylph resume {session}",),
        ),
    ]
    stray = [each for each in events if not isinstance(each.body, DeliveryRecorded)]
    assert "fail" in [
        one.state for one in diagnose_session(session, stray, LiveSessionInfo()) if one.check == "deliveries"
    ]
