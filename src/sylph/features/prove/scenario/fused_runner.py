"""The journaled runner with a fuse: at a chosen boundary it dies, or whoever gave it its orders does.

Started as a script in place of engine/commands/runner_process.py, with the same argument;
`setting.json` above its folder says where.
"""

import importlib.util
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sylph.engine.commands import runner_process
else:
    # It has nothing but the standard library, like the real one, and so reads it by its path.
    RUNNER = Path(__file__).parents[3] / "engine" / "commands" / "runner_process.py"
    _spec = importlib.util.spec_from_file_location("runner", RUNNER)
    runner_process = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(runner_process)

# As if the machine were busy: whoever recovers comes before the runner goes on.
STALL_SECONDS = 0.3


class RunnerFuse:
    def __init__(self, root: Path) -> None:
        setting = json.loads((root / "setting.json").read_bytes())
        self._parent = int((root / "pid").read_text())
        self._kind, self._at = setting["kind"], setting["at"]
        self._count = os.open(root / "crossed", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # One is killed; the next one counts on from there.
        self._crossed = os.fstat(self._count).st_size

    def __call__(self) -> None:
        self._crossed += 1
        os.write(self._count, b".")
        if self._crossed != self._at:
            return
        if self._kind == "runner":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._kind == "orphan":
            os.kill(self._parent, signal.SIGKILL)
            time.sleep(STALL_SECONDS)


def main() -> None:
    fuse = RunnerFuse(Path(sys.argv[1]).parents[1])

    class FusedJournal(runner_process.CommandJournal):
        def begin(self, **intent: object) -> bool:
            fuse()
            begun = super().begin(**intent)
            fuse()
            return begun

        def append_line(self, **what: object) -> None:
            fuse()
            super().append_line(**what)
            fuse()

        def append_output(self, data: bytes) -> None:
            fuse()
            super().append_output(data)
            fuse()

    runner_process.CommandJournal = FusedJournal
    runner_process.main()


if __name__ == "__main__":
    main()
