"""A process under test that is started as a program, for whoever watches its system calls."""

import sys
from pathlib import Path

from sylph.features.prove.scenario.player import run_process
from sylph.features.prove.scenario.scratch_folder import ScratchFolder

if __name__ == "__main__":
    run_process(ScratchFolder(Path(sys.argv[1])))
