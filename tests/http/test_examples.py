"""The examples of the API's page, run as they stand there: what they show is what is answered."""

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from tests.flows.program import Sylph
from tests.http.acting import MODEL
from tests.http.served import Served, serving
from tests.model_server import Asked, ModelServer, Step, call, say
from tests.patience import eventually, waiting

PAGE = Path(__file__).parents[2] / "docs" / "handbook" / "api.md"
EXAMPLE = re.compile(r"<!-- run -->\n```sh\n(.*?)```\n(?:\n```(json|text)\n(.*?)```\n)?", re.DOTALL)
MARK = "=== example"
MORE = "…"
# What is always the same; all else differs from one run to the next, and is compared by its type.
FIXED = ("kind", "answer", "reason", "result", "title", "mode", "outcome", "status", "told", "text", "output")


def script(asked: Asked) -> Step:
    text = asked.users[0]
    if asked.json["messages"][-1].get("role") != "user":
        return say("Done.")
    if "by a command" in text:
        return call("shell", command="echo hello > e.txt")
    if found := re.match(r"Write hello into (\w\.txt)", text):
        return call("write", path=found[1], content="hello\n")
    if text.startswith("Wait"):
        return call("shell", command="sleep 3600" if "hour" in text else waiting("steered"))
    return say("Hello." if "hello" in text else "It is a picture.")


NEEDED = ("bash", "curl", "jq", "base64")


def examples() -> list[tuple[str, str, str]]:
    return EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"the examples need {', '.join(NEEDED)}")
async def test_they_are_answered_as_the_page_says(tmp_path: Path) -> None:
    told = await answers(tmp_path, [command for command, _, _ in examples()])
    assert len(told) == len(examples()) > 20
    for (command, kind, shown), answer in zip(examples(), told, strict=True):
        if kind == "json":
            many = values(shown), values(answer)
            assert len(many[0]) == len(many[1]), (command, answer)
            for wanted, got in zip(*many, strict=True):
                alike(wanted, got, command)
        elif kind == "text":
            words = [line for line in shown.splitlines() if line != MORE]
            assert all(any(same(word, line) for line in answer.splitlines()) for word in words), (command, answer)


async def answers(folder: Path, commands: list[str]) -> list[str]:
    """What each of them prints, one after the other in one shell."""
    workspace, home = folder / "work", folder / "home"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text(f'probe = false\nmodel = "{MODEL}"\n')
    async with ModelServer(script) as model:
        sylph = Sylph(home, workspace, {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "a-key-for-tests"})
        async with serving(sylph) as served:
            lines = "set -e\n" + "".join(f"{command}\necho; echo '{MARK}'\n" for command in commands)
            environ = sylph.env({"TOKEN": served.token, "SYLPH": f"{served.url}/api/v1"})
            shell = await asyncio.create_subprocess_exec(
                *("bash", "-c", lines),
                cwd=workspace,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            steered = asyncio.create_task(steer(served))
            try:
                out, _ = await shell.communicate()
            finally:
                steered.cancel()
                if shell.returncode is None:
                    shell.kill()
            assert shell.returncode == 0, out.decode()
            return out.decode().split(f"\n{MARK}\n")[:-1]


async def steer(served: Served) -> None:
    """Lets the command go on that waits until its turn is steered."""

    async def queued() -> bool:
        listed = (await served.client.get("/api/v1/sessions")).json()["items"]
        seen = [(await served.client.get(f"/api/v1/sessions/{one['id']}")).json() for one in listed]
        return any("when you are done" in row["text"] for one in seen for row in one["queue"])

    await eventually(queued, "a turn that is steered")
    (served.sylph.workspace / "steered").touch()


def values(text: str) -> list[Any]:
    """All JSON values in a text, one after the other."""
    found: list[Any] = []
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def alike(shown: Any, got: Any, where: str) -> None:
    """Whether an answer has the form that is shown: the same fields, unless `…` stands for more."""
    if isinstance(shown, dict):
        assert isinstance(got, dict), (where, got)
        known = cast("dict[str, Any]", shown)
        given = cast("dict[str, Any]", got)
        fields = {name for name in known if name != MORE}
        assert fields <= set(given), (where, fields - set(given))
        assert MORE in known or fields == set(given), (where, set(given) - fields)
        for name in fields:
            alike(known[name], given[name], f"{where} .{name}")
            if name in FIXED:
                assert same(str(known[name]), str(given[name])), (where, name, given[name])
    elif isinstance(shown, list):
        assert isinstance(got, list), (where, got)
        items, found = cast("list[Any]", shown), cast("list[Any]", got)
        wanted = [each for each in items if each != MORE]
        assert len(wanted) == len(found) or (MORE in items and len(found) > len(wanted)), (where, found)
        for one, other in zip(wanted, found, strict=False):
            alike(one, other, where)
    else:
        assert shown is None or got is None or type(shown) is type(got), (where, shown, got)


def same(shown: str, line: str) -> bool:
    """A line with `…` for what differs."""
    return bool(re.fullmatch(".*".join(map(re.escape, shown.split(MORE))), line.strip()))


@pytest.mark.parametrize(
    ("shown", "got"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"kind": "x"}, {"kind": "y"}),
        ([1], [1, 2]),
        ({"a": 1}, {}),
    ],
)
def test_what_differs_is_found(shown: Any, got: Any) -> None:
    with pytest.raises(AssertionError):
        alike(shown, got, "")
