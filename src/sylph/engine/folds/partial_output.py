"""What was shown and is in no fact yet: the answer as far as it is written, what running commands have printed."""

from sylph.core import facts
from sylph.core.events import EventBody, Signal
from sylph.core.signals import ArgsDelta, LiveSnapshot, PartialCall, Progress, ReasoningDelta, TextDelta, ToolOutput

# Of what one call prints only the end is kept, in characters; cut when it is twice as long.
TAIL = 100_000
# Facts with which everything that was being written is told, or over.
SETTLING_FACTS = (facts.TurnStarted, facts.TurnResumed, facts.TurnEnded, facts.ModelFailed)


class TailBuffer:
    """The end of something that grows."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > 2 * TAIL:
            self._pieces = [self.text()]
            self._size = len(self._pieces[0])

    def text(self) -> str:
        return "".join(self._pieces)[-TAIL:]


class PartialOutput:
    """Grows with what is shown, and shrinks with the facts that tell it."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._written: dict[int, tuple[str, list[str]]] = {}
        self._outputs: dict[str, TailBuffer] = {}
        self._progress = ""

    def add_signal(self, signal: Signal) -> None:
        match signal:
            case TextDelta(text=text):
                self._text.append(text)
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
            case ToolOutput(call=call, text=text):
                self._outputs.setdefault(call, TailBuffer()).add(text)
            case ArgsDelta(index=index, name=name, text=text):
                known, pieces = self._written.get(index, ("", []))
                self._written[index] = (name or known, pieces)
                pieces.append(text)
            case Progress(text=text):
                self._progress = text
            case _:
                pass

    def settle_fact(self, fact: EventBody) -> None:
        match fact:
            case facts.ToolFinished(call=call):
                self._outputs.pop(call, None)
            case facts.ToolCalled():
                self._written.clear()
            case facts.ModelRequested(role="main") | facts.ModelResponded(role="main"):
                self._clear_text()
            case _ if isinstance(fact, SETTLING_FACTS):
                self._clear_text()
                if not isinstance(fact, facts.ModelFailed):
                    self._outputs.clear()
            case _:
                pass

    def to_live_signal(self) -> LiveSnapshot | None:
        """All of it at once; None where there is nothing."""
        if not (self._text or self._reasoning or self._written or self._outputs or self._progress):
            return None
        return LiveSnapshot(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=tuple(PartialCall(name=name, text="".join(pieces)) for name, pieces in self._written.values()),
            outputs={call: tail.text() for call, tail in self._outputs.items()},
            progress=self._progress,
        )

    def _clear_text(self) -> None:
        self._text, self._reasoning, self._progress = [], [], ""
        self._written.clear()
