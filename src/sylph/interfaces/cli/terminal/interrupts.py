"""Ctrl-C and SIGTERM: the first asks the turn to end, the second ends the program."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def catch_signals(on_signal: Callable[[int], None]) -> Generator[None, None, None]:
    """While inside, `on_signal` gets the number of every signal."""
    loop = asyncio.get_running_loop()
    for each in ENDING_SIGNALS:
        loop.add_signal_handler(each, on_signal, int(each))
    try:
        yield
    finally:
        for each in ENDING_SIGNALS:
            loop.remove_signal_handler(each)


@contextmanager
def catch_first_signal(on_first: Callable[[int], None]) -> Generator[None, None, None]:
    """While inside, `on_first` gets the number of the first signal; a second one kills as if nobody listened."""
    loop = asyncio.get_running_loop()

    def first(number: int) -> None:
        for each in ENDING_SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, _exit_at_once)
        on_first(number)

    with catch_signals(first):
        yield


def _exit_at_once(number: int, _: object) -> None:
    # Nothing is lost: what was not finished is in the log, and `sylph resume` goes on from there.
    os._exit(128 + number)
