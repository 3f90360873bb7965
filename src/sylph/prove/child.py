"""A process under test that is started as a program, for whoever watches its system calls."""

import sys
from pathlib import Path

from sylph.prove.actor import act
from sylph.prove.place import Place

if __name__ == "__main__":
    act(Place(Path(sys.argv[1])))
