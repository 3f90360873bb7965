"""The command line's entry. It imports nothing that only some commands need."""

import sys

from sylph import __version__


def main() -> int:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"sylph {__version__}\n")
        return 0
    from sylph.interfaces.cli.main import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
