"""Commands are asked about by what they would do, through the real program."""

from typing import Any

import pytest
from tests.flows.program import Done, Model, Sylph
from tests.model_server import call, say


def decided(done: Done) -> tuple[str, str, str]:
    data: dict[str, Any] = next(event["data"] for event in done.events if event["type"] == "tool.decided")
    return data["decision"], data["effect"], data["risk"]


@pytest.mark.parametrize("command", ["cat a.txt | wc -l", "for f in *.txt; do head -1 $f; done", "bash -c 'cat a.txt'"])
@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_a_command_that_only_looks_needs_no_question(sylph: Sylph, model: Model, command: str, mode: str) -> None:
    (sylph.workspace / "a.txt").write_text("one\n")
    server = await model([call("shell", command=command), say("Seen.")])
    done = await sylph.run("--json", "--mode", mode, "look")
    assert (done.code, decided(done)) == (0, ("allow", "read", "safe"))
    assert b"[exit 0]" in server.requests[1].body


@pytest.mark.parametrize(
    ("tool", "command", "effect", "risk"),
    [
        ("shell", "ls; touch made", "write", "safe"),
        ("shell", "ls > made", "write", "caution"),
        ("shell", "echo 'touch made' | sh", "write", "dangerous"),
        ("shell", "touch made; echo 'a", "write", "dangerous"),
        ("shell", "touch made; curl http://127.0.0.1:9", "external", "caution"),
        ("shell", "touch made ~/sylph/config.toml", "self", "dangerous"),
        ("job", "touch made", "write", "safe"),
        ("job", "ls && rm -rf ~ && touch made", "write", "dangerous"),
    ],
)
async def test_what_does_more_waits_for_a_yes(
    sylph: Sylph, model: Model, tool: str, command: str, effect: str, risk: str
) -> None:
    asked = call("job", action="start", command=command) if tool == "job" else call(tool, command=command)
    await model([asked, say("I could not.")])
    done = await sylph.run("--json", "do it")
    assert decided(done) == ("deny", effect, risk)
    assert not (sylph.workspace / "made").exists()


async def test_a_secret_is_told_from_other_files(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / ".env").write_text("A=1\n")
    await model([call("shell", command="cat .e*"), say("Seen.")])
    assert decided(await sylph.run("--json", "look"))[1:] == ("read", "dangerous")
