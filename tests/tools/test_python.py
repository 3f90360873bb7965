"""A Python session for each conversation."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.patience import eventually
from tests.tools.desk import TOOLS, Desk, refused

from sylph.core.tool import ToolResult
from sylph.engine.commands.runner_client import RunnerClient


class Session:
    def __init__(self, desk: Desk) -> None:
        self.desk, self.number = desk, 0

    async def run(self, code: str, **how: object) -> ToolResult:
        self.number += 1
        self.desk.current = f"t1_c{self.number}"
        return await self.desk.use("python", code=code, **how)

    def restart(self) -> None:
        """As if Sylph had died and come back."""
        self.desk.runner.close()
        self.desk.runner = RunnerClient(self.desk.runner.folder)


@pytest.fixture
async def session(desk: Desk) -> Session:
    return Session(desk)


@pytest.fixture(autouse=True)
async def ended(desk: Desk) -> AsyncGenerator[None]:
    yield
    for job in desk.context.jobs.all():
        await desk.context.jobs.stop(job.id)


def kind(result: ToolResult) -> str:
    return result.trouble.kind if result.trouble else ""


async def test_what_one_call_defines_the_next_one_knows(session: Session) -> None:
    assert (await session.run("x = 20\nprint('set')")).text == "set"
    assert (await session.run("x + 1")).text == "[_2: int] 21"
    assert (await session.run("_ + _2")).text == "[_3: int] 42"
    assert (await session.run("pass")).text == "Done."


async def test_a_big_value_is_kept_and_shown_in_short(session: Session) -> None:
    told = (await session.run("list(range(1_000_000))")).text
    assert told == "[_1: list, length 1000000]\n0\n1\n2\n3\n4\n... 999995 more"
    assert (await session.run("_1[500_000:500_003]")).text == "[_2: list, length 3] [500000, 500001, 500002]"
    assert len((await session.run("'x' * 10_000_000")).text) < 2200
    assert "cannot be shown" in (await session.run("class A:\n  def __repr__(self): return 1/0\nA()")).text


async def test_output_is_bounded_and_shown_while_it_comes(session: Session) -> None:
    told = (await session.run("for i in range(400_000): print('line', i)")).text
    assert told.startswith("line 0\n")
    assert told.endswith("line 399999")
    assert "bytes dropped" in told
    assert len(told) < 1_300_000
    assert "line 0\n" in "".join(session.desk.output)


async def test_an_exception_is_told_with_the_lines_of_the_cell(session: Session) -> None:
    result = await session.run("def f(n):\n    return 1 / n\nprint('before')\nf(0)")
    assert kind(result) == "exception"
    assert result.text.startswith("before\nTraceback")
    assert "return 1 / n" in result.text
    assert "python session" not in result.text
    assert result.text.endswith("ZeroDivisionError: division by zero")
    assert "SyntaxError" in (await session.run("x ==")).text
    assert "ast.py" not in (await session.run("x ==")).text
    deep = await session.run("def g(): g()\ng()")
    assert "RecursionError" in deep.text
    assert len(deep.text.splitlines()) < 60


async def test_too_slow_code_is_interrupted_and_the_variables_stay(session: Session) -> None:
    result = await session.run("import time\nkept = 1\nprint('begun')\ntime.sleep(300)", seconds=3)
    assert kind(result) == "timed_out"
    assert result.text.startswith("begun\n")
    assert "variables are kept" in result.text
    assert (await session.run("kept")).text == "[_2: int] 1"


async def test_code_that_will_not_stop_is_ended_and_that_is_said(session: Session) -> None:
    stubborn = "import time\nwhile True:\n  try: time.sleep(1)\n  except KeyboardInterrupt: pass"
    result = await session.run(stubborn, seconds=0.3)
    assert "all variables are lost" in result.text
    assert (await session.run("1 + 1")).text == "[_1: int] 2"


async def test_code_that_ends_its_process_is_told(session: Session) -> None:
    result = await session.run("import os\nx = 1\nos._exit(3)")
    assert (kind(result), "with 3" in result.text) == ("session_lost", True)
    assert "NameError" in (await session.run("x")).text
    assert (await session.run("import sys; sys.exit(0)")).ok


async def test_the_variables_outlive_sylph(session: Session) -> None:
    await session.run("x = 'still here'")
    session.restart()
    assert (await session.run("x")).text == "[_2: str, length 10] 'still here'"


async def test_a_lost_session_is_not_passed_over_in_silence(session: Session) -> None:
    await session.run("x = 1")
    await session.desk.use("job", action="stop", id="python-1")
    told = await session.run("print('new')")
    assert told.text == "[a new session: the one before was stopped, its variables are lost]\nnew"


async def test_reset_forgets(session: Session) -> None:
    await session.run("x = 1")
    assert "NameError" in (await session.run("x", reset=True)).text
    assert "ended" in (await session.run("", reset=True)).text
    with refused("bad_argument"):
        await session.run("")


async def test_code_of_a_call_that_is_given_up_is_stopped_and_that_is_found_later(session: Session) -> None:
    tool = TOOLS["python"]
    assert tool.recover
    args = tool.args(code="import time; time.sleep(300)")  # pyright: ignore[reportCallIssue]
    context = session.desk.context
    assert await tool.recover(args, context) is None
    task = asyncio.ensure_future(tool.run(args, context))
    await eventually(lambda: context.jobs.input_taken("python-1", context.call), "the call to be taken")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    session.restart()
    found = await tool.recover(args, session.desk.context)
    assert found
    assert "Interrupted" in found.text


async def test_a_call_is_run_once_however_often_it_is_sent(session: Session) -> None:
    tool = TOOLS["python"]
    assert tool.recover
    args = tool.args(code="open('made', 'a').write('x'); 6 * 7")  # pyright: ignore[reportCallIssue]
    assert (await tool.run(args, session.desk.context)).text == "[_1: int] 42"
    session.restart()
    found = await tool.recover(args, session.desk.context)
    assert found
    assert found.text == "[_1: int] 42"
    assert (session.desk.workspace / "made").read_text() == "x"


async def test_a_session_that_died_under_a_call_leaves_its_outcome_unknown(session: Session) -> None:
    tool = TOOLS["python"]
    assert tool.recover
    args = tool.args(code="print('begun', flush=True); import time; time.sleep(300)")  # pyright: ignore[reportCallIssue]
    context = session.desk.context
    task = asyncio.ensure_future(tool.run(args, context))
    await eventually(lambda: session.desk.output, "some output")
    await context.jobs.stop("python-1")
    assert kind(await task) == "session_lost"
    with refused("unknown") as caught:
        await tool.recover(args, context)
    assert "begun" in str(caught.value.trouble.details)


async def test_modules_and_files_of_the_workspace_are_at_hand(session: Session) -> None:
    session.desk.write("mine.py", "ANSWER = 42\n")
    session.desk.write("json.py", "raise RuntimeError('not the real one')\n")
    assert (await session.run("import mine, os; mine.ANSWER, os.path.basename(os.getcwd())")).text.endswith(
        "(42, 'work')"
    )


async def test_processes_and_prints_come_in_order(session: Session) -> None:
    result = await session.run("import os\nprint('one')\nos.system('echo two; echo three >&2')\nprint('four')")
    assert result.text == "one\ntwo\nthree\nfour"


async def test_the_workspace_s_own_python_is_preferred(session: Session) -> None:
    own = session.desk.write(".venv/bin/python", '#!/bin/sh\nexport OWN=yes\nexec python3 "$@"\n')
    own.chmod(0o755)
    assert "'yes'" in (await session.run("import os; os.environ['OWN']")).text


async def test_credentials_are_not_passed_on(session: Session) -> None:
    assert "KeyError" in (await session.run("import os; os.environ['OPENAI_API_KEY']")).text
