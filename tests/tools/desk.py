"""A place where a tool works as the executor lets it: real files, and everything it says kept to be looked at."""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import pytest

from sylph.core.errors import ToolError
from sylph.core.events import Fact
from sylph.core.permission.path_policy import PathPolicy, real_path
from sylph.core.tool import Tool, ToolContext, ToolResult, UserQuestion
from sylph.engine.commands.jobs import SessionJobs
from sylph.engine.commands.runner_client import JournaledCommands, RunnerClient
from sylph.tools.toolset import build_workspace_tools

PLACES = PathPolicy(home=real_path(Path.home()))
TOOLS = {tool.name: tool for tool in build_workspace_tools(os.environ, PLACES)}


@dataclass
class Desk:
    workspace: Path
    seconds: float = 60.0
    output: list[str] = field(default_factory=list[str])
    facts: list[Fact] = field(default_factory=list[Fact])
    asked: list[UserQuestion] = field(default_factory=list[UserQuestion])
    answers: Sequence[str] = ()
    kept: dict[str, str] = field(default_factory=dict[str, str])
    foreseen: dict[str, str] = field(default_factory=dict[str, str])
    memory: int = 0
    current: str = "t1_c1"
    private: Path = field(default_factory=lambda: Path(mkdtemp(prefix="sylph-private-")))
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    runner: RunnerClient = field(default_factory=lambda: RunnerClient(Path(mkdtemp(prefix="sylph-runs-"))))

    @property
    def call(self) -> str:
        """Each call has a journal of its own."""
        return f"t1_c{next(self.numbers)}"

    @property
    def context(self) -> ToolContext:
        return ToolContext(
            session="s",
            call=self.current,
            workspace=self.workspace,
            seconds=self.seconds,
            output=self.output.append,
            emit=self._emit,
            ask=self._ask,
            full_output=self._whole,
            runner=JournaledCommands(self.runner, self.call),
            jobs=SessionJobs(self.runner, "s"),
            private=self.private,
            memory=self.memory,
            foreseen=self.foreseen,
        )

    async def use(self, tool: Tool | str, **arguments: object) -> ToolResult:
        """One call, its arguments checked as a model's are."""
        tool = TOOLS[tool] if isinstance(tool, str) else tool
        return await tool.run(msgspec.convert(arguments, tool.args), self.context)

    async def preview(self, name: str, **arguments: object) -> str:
        preview = TOOLS[name].preview
        assert preview
        return await preview(msgspec.convert(arguments, TOOLS[name].args), self.context)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    async def _emit(self, fact: Fact) -> None:
        self.facts.append(fact)

    async def _ask(self, questions: Sequence[UserQuestion]) -> Sequence[str]:
        self.asked += questions
        return self.answers

    async def _whole(self, call: str) -> str | None:
        return self.kept.get(call)


@contextmanager
def refused(kind: str) -> Generator[pytest.ExceptionInfo[ToolError]]:
    """The block ends with an error of this kind for the model."""
    with pytest.raises(ToolError) as caught:
        yield caught
    assert caught.value.trouble.kind == kind
