"""Ctrl-C and SIGTERM: the first asks the turn to end, the second ends the program."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def heard(on_signal: Callable[[int], None]) -> Generator[None, None, None]:
    """While inside, `on_signal` gets the number of every signal."""
    loop = asyncio.get_running_loop()
    for each in ENDING:
        loop.add_signal_handler(each, on_signal, int(each))
    try:
        yield
    finally:
        for each in ENDING:
            loop.remove_signal_handler(each)


@contextmanager
def interrupts(on_first: Callable[[int], None]) -> Generator[None, None, None]:
    """While inside, `on_first` gets the number of the first signal; a second one kills as if nobody listened."""
    loop = asyncio.get_running_loop()

    def first(number: int) -> None:
        for each in ENDING:
            loop.remove_signal_handler(each)
            signal.signal(each, _second)
        on_first(number)

    with heard(first):
        yield


def _second(number: int, _: object) -> None:
    # Nothing is lost: what was not finished is in the log, and `sylph resume` goes on from there.
    os._exit(128 + number)
