"""What a program logs, traces of errors included, without secrets."""

import logging

from sylph.engine.redact.veil import Veil

FORMAT = "%(levelname)s %(name)s: %(message)s"


class Discreet(logging.Formatter):
    def __init__(self, veil: Veil) -> None:
        super().__init__(FORMAT)
        self._veil = veil

    def format(self, record: logging.LogRecord) -> str:
        return self._veil.text(super().format(record))
