"""Takes the pictures of the README from the real program in a real terminal (tmux), as SVG.

    scripts/pictures            all of them
    scripts/pictures tour chat  some

The model is the scripted server of the tests; what is shown is what a person would see.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
SYLPH = ROOT / ".venv" / "bin" / "sylph"
WIDTH = 100

# Rich's own frame without its web font: a picture in the repository asks nobody for anything.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
<rect fill="#101418" x="1" y="1" width="{width}" height="{height}" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


class Terminal:
    """A tmux pane of its own, in a folder of its own."""

    def __init__(self, folder: Path, env: dict[str, str], height: int) -> None:
        self._socket = str(folder / "tmux")
        self._run("new-session", "-d", "-x", str(WIDTH), "-y", str(height), "bash --norc --noprofile")
        exports = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in env.items())
        self.type(f"{exports}; cd {folder}; PS1='$ '; clear")
        time.sleep(0.5)

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def key(self, name: str) -> None:
        self._run("send-keys", name)

    def wait(self, text: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.screen():
            if time.monotonic() > end:
                raise SystemExit(f"{text!r} did not appear:\n{self.screen()}")
            time.sleep(0.05)

    def screen(self, *, colour: bool = False) -> str:
        return self._run("capture-pane", "-p", *(["-e"] if colour else [])).rstrip("\n") + "\n"

    def close(self) -> None:
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        return subprocess.run(["tmux", "-S", self._socket, *words], capture_output=True, text=True, check=True).stdout


def tour(terminal: Terminal) -> None:
    terminal.type("sylph tour")
    terminal.wait("May edit run?")
    time.sleep(0.3)


def tour_end(terminal: Terminal) -> None:
    terminal.type("sylph tour")
    for _ in range(2):
        terminal.wait("[y]")
        terminal.key("y")
        time.sleep(0.6)
    terminal.wait("just sylph for the chat")
    time.sleep(0.3)


def task(terminal: Terminal) -> None:
    terminal.type('sylph --mode auto_noselfmod "Why does the test fail? Repair it."')
    terminal.wait("passes now")
    time.sleep(0.5)


SCRIPT = [
    {"calls": [["grep", {"pattern": "def ", "path": "."}], ["read", {"path": "prices.py"}]]},
    {"text": "The discount is added instead of taken off. ", "calls": [
        ["edit", {"path": "prices.py", "old": "price + price * percent", "new": "price - price * percent"}]]},
    {"calls": [["shell", {"command": "python3 -m unittest -q test_prices 2>&1"}]]},
    {"text": "`discounted` added the discount instead of taking it off. I changed the sign in prices.py; "
             "the test passes now (exit 0)."},
]  # fmt: skip

SHOTS: dict[str, tuple[Callable[[Terminal], None], int]] = {
    "task": (task, 18),
    "tour": (tour, 32),
    "proof": (tour_end, 30),
}


def main() -> int:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SHOTS:
        act, height = SHOTS[name]
        with tempfile.TemporaryDirectory(prefix="shop-") as place:
            _shoot(name, act, height, Path(place))
    return 0


def _shoot(name: str, act: Callable[[Terminal], None], height: int, folder: Path) -> None:
    (folder / "prices.py").write_text("def discounted(price, percent):\n    return price + price * percent / 100\n")
    (folder / "test_prices.py").write_text(
        "import unittest\n\nfrom prices import discounted\n\n\nclass Discount(unittest.TestCase):\n"
        "    def test_ten_percent(self):\n        self.assertEqual(discounted(50, 10), 45)\n"
    )
    script = folder.parent / f"{folder.name}.json"
    script.write_text(json.dumps(SCRIPT))
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "model_server"), "--script", str(script), "--loop"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    env = {
        "PATH": f"{SYLPH.parent}:{os.environ['PATH']}",
        "SYLPH_HOME": tempfile.mkdtemp(prefix="sylph-"),
        "OPENAI_BASE_URL": server.stdout.readline().strip(),
        "OPENAI_API_KEY": "none",
        "TERM": "screen-256color",
    }
    terminal = Terminal(folder, env, height)
    try:
        act(terminal)
        _save(name, terminal.screen(colour=True))
    finally:
        terminal.close()
        server.kill()
        server.communicate()
        script.unlink()


def _save(name: str, screen: str) -> None:
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), color_system="truecolor")  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(screen), no_wrap=True, crop=True)
    console.save_svg(str(PICTURES / f"{name}.svg"), title="", code_format=FRAME, unique_id=f"sylph-{name}")


if __name__ == "__main__":
    sys.exit(main())
