"""Memory: an idle runtime, and what each further live session adds."""

import subprocess

from bench.measure import PYTHON, ROOT, Row, home

LIVE = """
import asyncio, gc, resource, sys
from pathlib import Path
from sylph.core.tool import Tool, ToolArgs, ToolResult
from sylph.testing import ScriptedProvider, begin_session, call_tool, play_turn, say, scripted_runtime

def rss():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

class Look(ToolArgs, frozen=True):
    path: str

async def look(args, context):
    return ToolResult(text="line of text\\n" * 40)

TOOLS = (Tool(name="look", description="looks", args=Look, run=look, effect="read", recourse="pure"),)
LINES = [call_tool("look", path="a.txt"), call_tool("look", path="b.txt"), say("Done, and this is why. " * 10)]

async def main(home):
    async with scripted_runtime(home, LINES * 500, tools=TOOLS) as engine:
        idle = rss()
        first = await begin_session(engine, home)
        await play_turn(engine, first, "go")
        one = rss()
        for _ in range(200):
            session = await begin_session(engine, home)
            await play_turn(engine, session, "go")
        print(idle, one, (rss() - one) / 200)

asyncio.run(main(Path(sys.argv[1])))
"""


def rows() -> list[Row]:
    with home() as folder:
        printed = subprocess.run(
            [PYTHON, "-c", LIVE, str(folder)], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    idle, one, further = (float(part) for part in printed.split())
    bare = "import asyncio; print(int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20)"
    floor = float(subprocess.run([PYTHON, "-c", bare], capture_output=True, text=True, check=True).stdout)
    return [
        Row(name="idle runtime", figure=idle, unit="MB", floor=floor, note="floor: Python with asyncio"),
        Row(name="with one live session", figure=one, unit="MB", floor=floor),
        Row(name="each further live session", figure=further, unit="MB", bar=1.0),
    ]
