"""Runs an installer that works in a folder. When its stdin ends, both are gone: also when Sylph was killed.

It is started with `python -I -S`, with the folder and the command as arguments, and knows the standard library only.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress


def main(folder: str, *command: str) -> int:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    unwanted = threading.Event()
    threading.Thread(target=_watch_parent, args=(process.pid, unwanted), daemon=True).start()
    code = process.wait()
    if unwanted.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _watch_parent(pid: int, unwanted: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    unwanted.set()
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
