"""What is being written: whoever comes late, or was too slow, ends with the same words as who heard every piece."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core import facts, signals
from sylph.core.events import Event, EventBody, Fact, Signal
from sylph.engine.folds import partial_output
from sylph.engine.folds.partial_output import PartialOutput
from sylph.engine.log.event_bus import EventBus, SessionLiveOutput

SESSION = "s"
# What a turn does, one letter each; `c` is when the log's writer tells that what was written is kept.
SHOWN: dict[str, Signal] = {
    "t": signals.TextDelta(text="word "),
    "r": signals.ReasoningDelta(text="thought "),
    "o": signals.ToolOutput(call="c", text="line "),
    "s": signals.Progress(text="slow"),
    "a": signals.ArgsDelta(index=0, name="", text="{"),
}
WRITTEN: dict[str, Fact] = {
    "e": facts.ModelResponded(model="m", text="whole", finish="stop"),
    "q": facts.ModelRequested(model="m", round=1),
    "f": facts.ToolFinished(call="c", ok=True, output="all"),
    "T": facts.TurnEnded(outcome="finished"),
}
MOVES = "".join((*SHOWN, *WRITTEN, "c."))


class Story:
    """A session at work: facts are on the disk before they are told, as with the real log."""

    def __init__(self, size: int) -> None:
        self.disk: list[Event] = []
        self.told = 0
        self.unfinished = PartialOutput()
        self.bus = EventBus(
            self._read, size=size, unfinished=lambda _: SessionLiveOutput(self.told, self.unfinished.to_live_signal())
        )

    def _read(self, session: str, after: int, limit: int) -> list[Event]:
        assert session == SESSION
        return self.disk[after : after + min(limit, 3)]

    def play(self, move: str) -> None:
        if move in SHOWN:
            self._show(SHOWN[move])
        elif move in WRITTEN:
            self._write(WRITTEN[move])
        elif move == "c":
            self._tell()

    def _show(self, signal: Signal) -> None:
        # What comes next is only shown once what was before it is kept.
        self._tell()
        self.unfinished.add_signal(signal)
        self.bus.publish(Event(session=SESSION, seq=0, ts=0, body=signal))

    def _write(self, fact: Fact) -> None:
        self.disk.append(Event(session=SESSION, seq=len(self.disk) + 1, ts=0, body=fact))

    def _tell(self) -> None:
        for event in self.disk[self.told :]:
            self.unfinished.settle_fact(event.body)
            self.told = event.seq
            self.bus.publish(event)


class Screen:
    """A client: it shows what it hears."""

    def __init__(self) -> None:
        self.shown = PartialOutput()

    def hear(self, body: EventBody) -> None:
        if isinstance(body, signals.LiveSnapshot):
            self.shown = PartialOutput()
            for signal in _pieces(body):
                self.shown.add_signal(signal)
        elif isinstance(body, Signal):
            self.shown.add_signal(body)
        else:
            self.shown.settle_fact(body)


def _pieces(live: signals.LiveSnapshot) -> list[Signal]:
    found: list[Signal] = [signals.TextDelta(text=live.text)] if live.text else []
    found += [signals.ReasoningDelta(text=live.reasoning)] if live.reasoning else []
    found += [signals.ArgsDelta(index=at, name=one.name, text=one.text) for at, one in enumerate(live.calls)]
    found += [signals.ToolOutput(call=call, text=text) for call, text in live.outputs.items()]
    return [*found, *([signals.Progress(text=live.progress)] if live.progress else [])]


@given(
    moves=st.text(MOVES, max_size=50),
    places=st.lists(st.integers(0, 50), min_size=1, max_size=4),
    size=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_all_end_with_the_same_words(moves: str, places: list[int], size: int, seed: int) -> None:
    asyncio.run(_play(moves, places, size, random.Random(seed)))


async def _play(moves: str, places: list[int], size: int, chance: random.Random) -> None:
    story = Story(size)
    readers = list[tuple[Screen, asyncio.Task[None]]]()

    async def look(screen: Screen, after: int) -> None:
        async for event in story.bus.watch(SESSION, after=after):
            screen.hear(event.body)
            for _ in range(chance.choice((0, 0, 1, 4))):
                await asyncio.sleep(0)

    for place, move in enumerate([*moves, "."]):
        for _ in range(places.count(place)):
            screen = Screen()
            readers.append((screen, asyncio.create_task(look(screen, story.told))))
        story.play(move)
        for _ in range(chance.choice((0, 1, 3))):
            await asyncio.sleep(0)
    story.play("c")
    for _ in range(400):
        await asyncio.sleep(0)
    for screen, task in readers:
        task.cancel()
        assert screen.shown.to_live_signal() == story.unfinished.to_live_signal()
    await asyncio.gather(*(task for _, task in readers), return_exceptions=True)


def test_of_a_long_output_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_output, "TAIL", 10)
    live = PartialOutput()
    for number in range(100):
        live.add_signal(signals.ToolOutput(call="c", text=f"{number:03} "))
    told = live.to_live_signal()
    assert told
    assert told.outputs == {"c": "7 098 099 "}


def test_nothing_is_left_when_all_is_told() -> None:
    live = PartialOutput()
    for signal in (signals.TextDelta(text="a"), signals.ToolOutput(call="c", text="b"), signals.Progress(text="c")):
        live.add_signal(signal)
    live.settle_fact(facts.TurnEnded(outcome="finished"))
    assert live.to_live_signal() is None
