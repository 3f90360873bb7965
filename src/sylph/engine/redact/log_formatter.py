"""What a program logs, traces of errors included, without secrets."""

import logging

from sylph.engine.redact.redactor import NoRedaction

FORMAT = "%(levelname)s %(name)s: %(message)s"


class RedactingFormatter(logging.Formatter):
    def __init__(self, redactor: NoRedaction) -> None:
        super().__init__(FORMAT)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.redact_text(super().format(record))
