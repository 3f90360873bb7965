"""Facts as they go by, taken to a thread that makes spans of them: no turn waits for it, and none fails of it."""

import importlib.util
import logging
import queue
import threading
from collections.abc import Callable

from sylph.core.events import Event
from sylph.core.facts.model import ModelFailed, ModelResponded
from sylph.core.facts.tool_call import ToolCalled, ToolFinished, ToolStarted
from sylph.core.facts.turn import InputReceived, TurnEnded, TurnResumed, TurnStarted
from sylph.features.telemetry.options import TelemetryOptions

logger = logging.getLogger(__name__)
OBSERVED_FACTS = (
    InputReceived,
    ModelFailed,
    ModelResponded,
    ToolCalled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
# What waits for the thread; where more comes, it is lost and the work goes on.
MAX_QUEUED = 10_000
# How long the end of the program waits for what is on its way.
LAST_SECONDS = 5.0


class TelemetryListener:
    """Hears facts from the first one of a turn on. Nothing is imported, and no thread begun, before that."""

    def __init__(self, terms: TelemetryOptions, redactor: Callable[[str], str]) -> None:
        self._terms, self._redactor = terms, redactor
        self._facts: queue.Queue[Event | None] = queue.Queue(MAX_QUEUED)
        self._thread: threading.Thread | None = None
        self._off = importlib.util.find_spec("opentelemetry") is None
        if self._off:
            logger.warning("telemetry.enabled needs more: pip install 'sylph[otel]'")

    def handle_event(self, event: Event) -> None:
        if self._off or not isinstance(event.body, OBSERVED_FACTS):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._export_loop, name="telemetry", daemon=True)
            self._thread.start()
        try:
            self._facts.put_nowait(event)
        except queue.Full:
            logger.warning("telemetry cannot keep up: a fact was not told")

    def close(self) -> None:
        """Waits a little for what is on its way."""
        if self._thread is None:
            return
        try:
            self._facts.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(LAST_SECONDS)

    def _export_loop(self) -> None:
        try:
            from sylph.features.telemetry.otlp_exporter import OtlpExporter

            exporter = OtlpExporter(self._terms, self._redactor)
        except Exception:
            # Whatever it is, it is not a reason to do no work.
            logger.exception("telemetry could not begin")
            self._off = True
            return
        while event := self._facts.get():
            try:
                exporter.export_event(event)
            except Exception:
                logger.exception("telemetry could not tell of %s", event.type)
        exporter.close(LAST_SECONDS)
