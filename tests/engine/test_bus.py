"""Whoever watches sees every fact once and in order, however slowly they look; only signals are missed, and counted."""

import asyncio
import random
from collections.abc import AsyncGenerator

from hypothesis import given
from hypothesis import strategies as st

from sylph.core import facts, signals
from sylph.core.events import Event
from sylph.engine.log.event_bus import EventBus

SESSION = "s"


class Story:
    """A log in memory with its bus; facts are published as they are written, as the real one does."""

    def __init__(self, *, size: int) -> None:
        self.facts: list[Event] = []
        self.bus = EventBus(self._read, size=size)

    def _read(self, session: str, after: int, limit: int) -> list[Event]:
        return [event for event in self.facts if event.seq > after and event.session == session][: min(limit, 3)]

    def fact(self) -> None:
        body = facts.SessionRenamed(title="x")
        self.facts.append(Event(session=SESSION, seq=len(self.facts) + 1, ts=0, body=body))
        self.bus.publish(self.facts[-1])

    def signal(self) -> None:
        self.bus.publish(Event(session=SESSION, seq=0, ts=0, body=signals.Progress(text="…")))


async def _collect(story: Story, after: int, pauses: random.Random, into: list[Event]) -> None:
    async for event in story.bus.watch(SESSION, after=after):
        into.append(event)
        for _ in range(pauses.choice((0, 0, 1, 5))):
            await asyncio.sleep(0)


async def _watched(story: Story, moves: str, readers: dict[int, int], seed: int) -> list[tuple[int, list[Event]]]:
    """Plays `moves` while readers come in at their place in it; returns what each saw, and from where."""
    pauses, seen, tasks = random.Random(seed), list[tuple[int, list[Event]]](), list[asyncio.Task[None]]()
    for place, move in enumerate([*moves, "."]):
        if place in readers:
            seen.append((min(readers[place], len(story.facts)), []))
            tasks.append(asyncio.create_task(_collect(story, seen[-1][0], pauses, seen[-1][1])))
            await asyncio.sleep(0)
        match move:
            case "f":
                story.fact()
            case "s":
                story.signal()
            case _:
                await asyncio.sleep(0)
    for _ in range(20 * len(moves) + 50):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return seen


@given(
    moves=st.text("fs.", max_size=60),
    readers=st.dictionaries(st.integers(0, 40), st.integers(0, 20), min_size=1, max_size=4),
    size=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_facts_are_seen_once_and_in_order_by_everybody(
    moves: str, readers: dict[int, int], size: int, seed: int
) -> None:
    story = Story(size=size)
    readers = {min(place, len(moves)): after for place, after in readers.items()}
    for after, seen in asyncio.run(_watched(story, moves, readers, seed)):
        assert [event.seq for event in seen if event.seq] == list(range(after + 1, len(story.facts) + 1))
    assert not story.bus.is_watched(SESSION)


@given(moves=st.text("fs.", max_size=60), size=st.integers(1, 4), seed=st.integers(0, 1000))
def test_every_signal_is_either_seen_or_counted_as_missed(moves: str, size: int, seed: int) -> None:
    story = Story(size=size)
    ((_, seen),) = asyncio.run(_watched(story, moves, {0: 0}, seed))
    missed = sum(event.body.missed for event in seen if isinstance(event.body, signals.Lagged))
    shown = sum(isinstance(event.body, signals.Progress) for event in seen)
    assert shown + missed == moves.count("s")


class Stories(Story):
    """Several logs."""

    def write(self, session: str, *, signal: bool, large: bool = False) -> None:
        body = signals.ToolOutput(call="c", text="x" * (3_000_000 if large else 1)) if signal else None
        seq = 0 if signal else 1 + sum(event.session == session for event in self.facts)
        event = Event(session=session, seq=seq, ts=0, body=body or facts.SessionRenamed(title="x"))
        self.facts += [] if signal else [event]
        self.bus.publish(event)


@given(
    moves=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("fst"), st.booleans()), max_size=60),
    size=st.integers(1, 6),
)
def test_one_reader_of_several_sessions_misses_no_fact_of_any(moves: list[tuple[str, str, bool]], size: int) -> None:
    """`t` takes, and follows or leaves a session: whoever comes back goes on where they were."""
    asyncio.run(_several(moves, size))


async def _several(moves: list[tuple[str, str, bool]], size: int) -> None:
    story, seen = Stories(size=size), list[Event]()
    reader = story.bus.open_reader()
    places = {"a": 0, "b": 0, "c": 0}
    for session, move, on in moves:
        match move:
            case "t":
                seen += reader.take()
                places |= reader.after
                reader.unfollow(session)
                if on:
                    reader.follow(session, places[session])
            case _:
                story.write(session, signal=move == "s")
    for session in "abc":
        if session not in reader.after:
            reader.follow(session, places[session])
    while taken := reader.take():
        seen += taken
    for session in "abc":
        written = [event.seq for event in story.facts if event.session == session]
        assert [event.seq for event in seen if event.session == session and event.seq] == written
    reader.close()
    assert not any(story.bus.is_watched(session) for session in "abc")


async def test_what_waits_is_bounded_by_its_size_as_well() -> None:
    story = Stories(size=1000)
    reader = story.bus.open_reader()
    reader.follow("a")
    assert not reader.take()
    for _ in range(5):
        story.write("a", signal=True, large=True)
    (event,) = reader.take()
    assert isinstance(event.body, signals.Lagged)
    assert event.body.missed == 5
    story.write("a", signal=True)
    assert len(reader.take()) == 1


async def test_a_watch_of_a_gappy_log_goes_on_behind_the_gap() -> None:
    story = Story(size=10)
    story.fact()
    story.fact()
    del story.facts[0]
    watch = story.bus.watch(SESSION)
    assert (await anext(watch)).seq == 2
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0.01)
    story.facts.append(Event(session=SESSION, seq=5, ts=0, body=facts.SessionRenamed(title="x")))
    story.bus.publish(story.facts[-1])
    assert (await waiting).seq == 5
    await _ends(watch)


async def test_nothing_is_published_to_nobody() -> None:
    story = Story(size=1)
    story.fact()
    story.signal()
    watch = story.bus.watch(SESSION, after=1)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert story.bus.is_watched(SESSION)
    story.signal()
    assert (await waiting).seq == 0
    await _ends(watch)
    assert not story.bus.is_watched(SESSION)


async def _ends(watch: AsyncGenerator[Event, None]) -> None:
    await watch.aclose()
