"""Who does what, and who steps in: roles and fallback, through the real program."""

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import pytest
from tests.flows.program import Done, Model, Sylph
from tests.model_server import ModelServer, Step, assert_extends, call, fail, say

DOWN = fail(503, "try later")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000"
    "000049454e44ae426082"
)


@pytest.fixture
async def other(sylph: Sylph) -> AsyncGenerator["Other", None]:
    """A second service, which takes over."""
    steps: list[Step] = []
    async with ModelServer(steps) as server:
        config = sylph.home / "sylph" / "config.toml"
        config.write_text(
            'probe = false\nmodel = "openai/scripted"\n[limits]\nretries = 0\n'
            f'[roles]\nfallback = ["other/small", "other/spare"]\n'
            f'[providers.other]\nbase_url = "{server.url}"\n'
            "[providers.other.models.small]\nwindow = 4000\n"
        )
        yield Other(server, steps)


class Other(NamedTuple):
    server: ModelServer
    steps: list[Step]

    @property
    def models(self) -> list[str]:
        """Which models were asked."""
        return [asked.json["model"] for asked in self.server.requests]


def facts(done: Done, kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in done.events if event["type"] == kind]


async def test_another_model_takes_over_loudly_with_tools_and_all(sylph: Sylph, model: Model, other: Other) -> None:
    main = await model([DOWN, say("Back again.")])
    other.steps.extend([call("write", path="a.txt", content="x"), say("Done.")])
    done = await sylph.run("--mode", "trust", "--json", "go on")
    (fell,) = facts(done, "model.fell_back")
    assert (fell["model"], fell["to"]) == ("openai/scripted", "other/spare")
    assert fell["passed"] == {"other/small": "its window of 4,000 tokens is too small"}
    assert (sylph.workspace / "a.txt").read_text() == "x"
    assert other.models == ["spare", "spare"]
    assert {tool["function"]["name"] for tool in other.server.requests[0].json["tools"]} >= {"shell", "write"}
    assert [each["model"] for each in facts(done, "model.responded")] == ["other/spare", "other/spare"]
    # The next turn begins with the session's own model.
    again = await sylph.run("-s", "last", "go on")
    assert again.out == "Back again.\n"
    assert len(main.requests) == 2
    replayed = await sylph.run("replay", "last")
    assert replayed.code == 0, replayed.out + replayed.err


async def test_it_is_said_on_the_terminal(sylph: Sylph, model: Model, other: Other) -> None:
    await model([DOWN])
    other.steps.extend([say("Here.")])
    done = await sylph.run("go on")
    assert done.out == "Here.\n"
    assert "! openai/scripted did not answer (" in done.err
    assert "other/spare takes over for this turn" in done.err
    assert "other/small was passed over" in done.err


async def test_images_are_not_left_out_to_make_it_fit(sylph: Sylph, model: Model, other: Other) -> None:
    (sylph.workspace / "dot.png").write_bytes(PIXEL)
    await model([call("read", path="dot.png"), DOWN])
    done = await sylph.run("--json", "look")
    (fell,) = facts(done, "model.fell_back")
    assert (fell["to"], fell["passed"]["other/spare"]) == ("", "it is not known to take images")
    assert other.models == []
    (ended,) = facts(done, "turn.ended")
    assert "No fallback could take over" in ended["trouble"]["message"]
    assert (await sylph.run("replay", "last")).code == 0


@pytest.mark.parametrize("trouble", [fail(401, "wrong key"), fail(404, "no such model"), fail(400, "bad")])
async def test_what_somebody_has_to_mend_is_not_gone_around(
    sylph: Sylph, model: Model, other: Other, trouble: Step
) -> None:
    await model([trouble])
    done = await sylph.run("--json", "go on")
    assert done.code
    assert other.models == []
    assert facts(done, "model.fell_back") == []


async def test_all_of_them_down_is_told(sylph: Sylph, model: Model, other: Other) -> None:
    await model([DOWN])
    other.steps.extend([DOWN])
    done = await sylph.run("go on")
    assert done.code
    assert "try later" in done.err


async def test_summaries_are_the_work_of_the_background_model(sylph: Sylph, model: Model, other: Other) -> None:
    full = {"prompt_tokens": 100_000, "completion_tokens": 10}
    main = await model([say("a " * 400), say("b " * 400, usage=full), say("Fine.")])
    other.steps.extend([say("They counted letters, a and b, as they were told to, and were content with it.")])
    await sylph.run("config", "set", "compaction.keep", "0.0")
    await sylph.run("count")
    await sylph.run("-s", "last", "count on")
    done = await sylph.run("-s", "last", "--role", "background=other/spare", "--json", "and?")
    assert [each["role"] for each in facts(done, "session.role")] == ["background"]
    assert len(facts(done, "compaction.made")) == 1
    assert other.models == ["spare"]
    assert [each["missed"] for each in facts(done, "model.requested") if each.get("kept") is not None] == ["compaction"]
    assert len(main.requests) == 3


async def test_roles_are_listed_and_can_be_named_for_a_task(sylph: Sylph, model: Model, other: Other) -> None:
    await model([])
    other.steps.extend([say("From behind.")])
    await sylph.run("config", "set", "roles.background", "other/spare")
    listed = {each["role"]: (each["model"], each["from"]) for each in (await sylph.run("roles", "--json")).json}
    assert listed["background"] == ("other/spare", "config")
    assert listed["judge"] == ("openai/scripted", "main")
    assert listed["fallback"] == ("other/small, other/spare", "config")
    assert listed["embed"] == ("", "")
    done = await sylph.run("-m", "@background", "who?")
    assert done.out == "From behind.\n"
    assert listed["main"] == ("openai/scripted", "config")
    nobody = await sylph.run("-m", "@embed", "who?")
    assert nobody.code == 4
    assert "config set roles.embed" in nobody.err
    await sylph.run("config", "set", "roles.judge", "nowhere/x")
    for command in ("roles", "doctor"):
        told = await sylph.run(command)
        assert "there is no provider for nowhere/x" in told.out + told.err
    wrong = await sylph.run("-m", "@backgrund", "who?")
    assert wrong.code == 2
    assert "Did you mean 'background'?" in wrong.err
    assert (await sylph.run("--role", "judge", "who?")).code == 2


async def test_a_prompt_only_grows_and_every_request_says_so(sylph: Sylph, model: Model) -> None:
    main = await model([call("list", path="."), *(say(f"Answer {number}.") for number in range(5))])
    runs = [await sylph.run("-m", "openai-chat/scripted", "--json", "begin")]
    runs.append(await sylph.run("-s", "last", "--mode", "plan", "--json", "another mode, another process"))
    session = runs[0].events[0]["session"]
    runs.append(await sylph.run("-s", session, "--json", "once more"))
    assert_extends(main.requests)
    told = [each for run in runs for each in facts(run, "model.requested")]
    assert [each["missed"] if each.get("missed") else "" for each in told] == ["first", "", "", ""]
    sizes = [len(each.body) for each in main.requests]
    assert [each["kept"] for each in told] == [0, *sizes[:-1]]
    forked = (await sylph.run("session", "fork", session)).out.strip()
    branch = await sylph.run("-s", forked, "--json", "on the branch")
    assert [each.get("missed", "") for each in facts(branch, "model.requested")] == [""]
    assert_extends([main.requests[-2], main.requests[-1]])


@pytest.mark.parametrize(
    ("used", "said"), [(60_000, ""), (92_000, "advisory"), (104_000, "warning"), (120_000, "critical")]
)
async def test_how_full_the_window_is_is_told(sylph: Sylph, model: Model, used: int, said: str) -> None:
    await model([say("Fine.", usage={"prompt_tokens": used, "completion_tokens": 0})])
    await sylph.run("config", "set", "providers.openai.models.scripted.window", "128000")
    done = await sylph.run("go on")
    assert ("context" in done.err) == bool(said)
    assert f"({said})" in done.err or not said
    (listed,) = (await sylph.run("session", "list", "--json")).json
    assert (listed["context_level"], listed["context_tokens"]) == (said, used)
