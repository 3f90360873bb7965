"""A Python that stays: cells of code come in one after the other, and what one has defined the next one knows.

Given to the user's own interpreter as its program, it needs nothing but the standard library of Python 3.8 or newer.
It plays two parts. The keeper reads requests on its input, one line of JSON each, hands them to the worker, stops code
that takes too long, and writes what becomes of them to its output, in lines of JSON too:

    {"id": …, "code": …, "seconds": …}   a cell          {"interrupt": id}   stop it
    {"id": …, "out": …}                  it printed      {"id": …, "end": {"state": …, …}}   how it ended

The worker runs the cells. When it dies the keeper tells how, and starts another one, which knows nothing. When
nothing was asked for a long time the keeper ends.
"""

from __future__ import annotations

import sys

# The folder one works in comes first among the places for modules, but not for those of this program.
if sys.path[:1] == [""]:
    del sys.path[0]

import ast
import contextlib
import json
import linecache
import os
import selectors
import signal
import subprocess
import time
import traceback
import types
from typing import Any

CHUNK = 65536
HEAD, TAIL = 1000000, 200000  # bytes of a cell's output that are kept: the first and the last of it
GRACE = 3.0  # seconds between asking code to stop and ending its process
AGAIN = 0.2  # seconds between two times of asking
SHOWN = 2000  # characters of a value that are shown
LINES = 20
ITEMS = 5
CELL = "<cell "
LOADER = "import sys; exec(compile(sys.argv[1], '<python session>', 'exec'))"


BIG: Any = (list, tuple, set, frozenset, dict)
KNOWN: Any = tuple(kind.__repr__ for kind in BIG)


class CellOutput:
    """What a cell prints: the first of it is passed on at once, of the rest the last part is kept."""

    def __init__(self, say: Any) -> None:
        self._say = say
        self.begin_cell("")

    def begin_cell(self, id: str) -> None:
        self._id, self._room, self._tail, self._dropped = id, HEAD, bytearray(), 0

    def add(self, data: bytes) -> None:
        fits, rest = data[: self._room], data[self._room :]
        self._room -= len(fits)
        if fits and self._id:
            self._say({"id": self._id, "out": fits.decode("utf-8", "replace")})
        self._tail += rest
        if len(self._tail) > TAIL:
            self._dropped += len(self._tail) - TAIL
            del self._tail[:-TAIL]

    def end_cell(self) -> None:
        if self._dropped:
            self._say({"id": self._id, "out": f"\n[... {self._dropped} bytes dropped ...]\n"})
        if self._tail:
            self._say({"id": self._id, "out": bytes(self._tail).decode("utf-8", "replace")})
        self._id = ""


class CellSupervisor:
    def __init__(self, program: str, idle: float) -> None:
        self._program, self._idle = program, idle
        self._selector = selectors.DefaultSelector()
        self._selector.register(0, selectors.EVENT_READ, self._read_requests)
        self._unread = b""
        self._waiting: list[Any] = []
        self._output = CellOutput(self._send_message)
        self._cell: Any = None
        self._ask_at = self._kill_at = 0.0
        self._why = ""
        self._open = True
        # The worker inherits it: it hears only while a cell runs.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._start_worker()

    def run(self) -> None:
        while self._open or self._cell or self._waiting:
            if self._waiting and not self._cell:
                self._begin_cell(self._waiting.pop(0))
            ready = self._selector.select(self._select_timeout())
            if not ready and not self._cell:
                break
            for key, _ in ready:
                key.data()
            self._check_deadlines()
        self._worker.kill()
        self._worker.wait()

    def _start_worker(self) -> None:
        """A new worker: its output on one pipe, cells to it and results from it on two others."""
        out, printed = os.pipe()
        cells, self._cells = os.pipe()
        self._results, results = os.pipe()
        self._worker = subprocess.Popen(
            [sys.executable, "-u", "-c", LOADER, self._program, "work", str(cells), str(results)],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(cells, results),
            start_new_session=True,
        )
        for fd in (printed, cells, results):
            os.close(fd)
        self._out, self._result = out, b""
        for fd, hear in ((self._out, self._read_output), (self._results, self._read_results)):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, hear)

    def _read_requests(self) -> None:
        data = os.read(0, CHUNK)
        if not data:
            self._selector.unregister(0)
            self._open = False
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in filter(None, lines):
            said = json.loads(line)
            if "interrupt" not in said:
                self._waiting.append(said)
            elif self._cell and self._cell["id"] == said["interrupt"]:
                self._interrupt_worker("interrupted")
            else:
                self._drop_waiting(said["interrupt"])

    def _drop_waiting(self, id: str) -> None:
        """A cell that is stopped before it has begun never does."""
        dropped = [cell for cell in self._waiting if cell["id"] == id]
        self._waiting = [cell for cell in self._waiting if cell["id"] != id]
        for cell in dropped:
            self._send_message({"id": cell["id"], "end": {"state": "interrupted"}})

    def _begin_cell(self, cell: Any) -> None:
        self._cell, self._why = cell, ""
        self._output.begin_cell(cell["id"])
        self._ask_at = time.monotonic() + cell["seconds"]
        self._kill_at = 0.0
        line = json.dumps({"code": cell["code"]}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._cells, line) :]

    def _interrupt_worker(self, why: str) -> None:
        now = time.monotonic()
        if not self._why:
            self._why, self._kill_at = why, now + GRACE
        self._ask_at = now + AGAIN
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._worker.pid, signal.SIGINT)

    def _check_deadlines(self) -> None:
        if not self._cell:
            return
        now = time.monotonic()
        if self._kill_at and now >= self._kill_at:
            self._kill_at = now + GRACE
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._worker.pid, signal.SIGKILL)
        elif now >= self._ask_at:
            self._interrupt_worker("time")

    def _select_timeout(self) -> Any:
        if not self._cell:
            return self._idle
        moments = [self._ask_at] + ([self._kill_at] if self._kill_at else [])
        return max(min(moments) - time.monotonic(), 0.0)

    def _read_output(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._output.add(os.read(self._out, CHUNK))

    def _read_results(self) -> None:
        data = os.read(self._results, CHUNK)
        if not data:
            self._replace_worker()
            return
        *lines, self._result = (self._result + data).split(b"\n")
        for line in lines:
            self._end_cell(json.loads(line))

    def _end_cell(self, result: Any) -> None:
        if self._why and result["state"] == "interrupted":
            result["state"] = self._why
        self._drain_output()
        self._output.end_cell()
        self._send_message({"id": self._cell["id"], "end": result})
        self._cell = None

    def _drain_output(self) -> None:
        """What was printed before the cell ended is in the pipe; what its processes print comes a little later."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self._out, CHUNK)
                if not data:
                    return
                self._output.add(data)

    def _replace_worker(self) -> None:
        """The worker is gone, and with it all that was defined."""
        code = self._worker.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._worker.pid, signal.SIGKILL)
        if self._cell:
            self._end_cell({"state": self._why or "died", "exit": code, "lost": True})
        for fd in (self._out, self._results):
            self._selector.unregister(fd)
            os.close(fd)
        os.close(self._cells)
        self._start_worker()

    def _send_message(self, what: Any) -> None:
        line = json.dumps(what).encode() + b"\n"
        while line:
            line = line[os.write(1, line) :]


class CellWorker:
    def __init__(self, cells: int, results: int) -> None:
        self._cells, self._results = os.fdopen(cells, "rb"), results
        os.set_inheritable(cells, False)  # noqa: FBT003 - the system's signature
        os.set_inheritable(results, False)  # noqa: FBT003 - the same
        # What a script finds: a module of its own that is called __main__, as pickle and multiprocessing expect it.
        self._module = types.ModuleType("__main__")
        self._names = self._module.__dict__
        sys.modules["__main__"] = self._module
        sys.argv[:] = [""]
        self._count = 0

    def run(self) -> None:
        while True:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            line = self._cells.readline()
            if not line:
                return
            self._count += 1
            try:
                result = self._run_cell(json.loads(line)["code"])
            except KeyboardInterrupt:
                # It was asked once more while it was stopping.
                result = {"state": "interrupted"}
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(self._results, json.dumps(dict(result, count=self._count)).encode() + b"\n")

    def _run_cell(self, code: str) -> Any:
        name = f"{CELL}{self._count}>"
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            value = self._execute_code(code, name)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return {"state": "ok", "value": self._store_value(value)} if value is not None else {"state": "ok"}
        except KeyboardInterrupt as error:
            return {"state": "interrupted", "error": format_traceback(error)}
        except SystemExit as error:
            return {"state": "ok"} if not error.code else {"state": "error", "error": f"SystemExit: {error.code}"}
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the cell's
            return {"state": "error", "error": format_traceback(error)}

    def _execute_code(self, code: str, name: str) -> Any:
        """The value of the last expression; None if the code does not end with one."""
        tree = ast.parse(code, name)
        # So that tracebacks show the lines of the cell.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        final: Any = tree.body[-1] if tree.body else None
        last = tree.body.pop() and final.value if isinstance(final, ast.Expr) else None
        exec(compile(tree, name, "exec"), self._names)
        if last is None:
            return None
        return eval(compile(ast.Expression(last), name, "eval"), self._names)

    def _store_value(self, value: Any) -> Any:
        """The value gets a name, so that it need not be made or printed again; shown is only what it looks like."""
        number = f"_{self._count}"
        self._names["_"] = self._names[number] = value
        try:
            return {"name": number, "what": describe_value(value), "text": summarize_value(value)}
        except Exception as error:  # noqa: BLE001 - a value's own repr may do anything
            return {
                "name": number,
                "what": type(value).__name__,
                "text": f"(cannot be shown: {type(error).__name__})",
            }


def describe_value(value: Any) -> str:
    """Type and size, as far as it has one."""
    kind: Any = value.__class__
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        dtype = getattr(value, "dtype", "")
        return f"{name}, shape {shape}, {dtype}".rstrip(", ")
    if issubclass(kind, (str, bytes, bytearray, *BIG)):
        return f"{name}, length {len(value)}"
    return name


def summarize_value(value: Any) -> str:
    """The first of a value, without ever writing all of a big one."""
    kind: Any = value.__class__
    if kind.__repr__ in KNOWN and len(value) > ITEMS:
        items = iter(value.items() if issubclass(kind, dict) else value)
        some = [clip_repr(item, SHOWN // ITEMS) for item in (next(items) for _ in range(ITEMS))]
        return "\n".join([*some, f"... {len(value) - ITEMS} more"])
    if isinstance(value, str) and len(value) > SHOWN:
        return f"{value[:SHOWN]!r}... {len(value) - SHOWN} more characters"
    lines = clip_repr(value, SHOWN).split("\n")
    more = [f"... {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join(lines[:LINES] + more)


def clip_repr(value: Any, limit: int) -> str:
    if isinstance(value, (str, bytes)) and len(value) > limit:
        value = value[:limit]
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."


def format_traceback(error: BaseException) -> str:
    """The traceback from the cell on; of a long one the beginning and the end."""
    made = traceback.TracebackException(type(error), error, error.__traceback__)
    while made.stack and not made.stack[0].filename.startswith(CELL):
        del made.stack[0]
    lines = "".join(made.format()).rstrip("\n").split("\n")
    if len(lines) > 2 * LINES:
        lines = [*lines[:LINES], f"  [... {len(lines) - 2 * LINES} lines ...]", *lines[-LINES:]]
    return "\n".join(line[:SHOWN] for line in lines)


def main() -> None:
    program, *more = sys.argv[1:]
    if more[:1] == ["work"]:
        worker = CellWorker(int(more[1]), int(more[2]))
        sys.path.insert(0, "")
        worker.run()
    else:
        CellSupervisor(program, float(more[0])).run()


if __name__ == "__main__":
    main()
