"""Pictures and documents that go with a message."""

import base64
from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph
from tests.flows.test_roles import PIXEL
from tests.model_server import assert_extends, say


async def test_a_picture_goes_with_the_message_and_stays_in_the_session(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "dot.png").write_bytes(PIXEL)
    server = await model([say("A dot."), say("Still a dot."), say("Again.")])
    done = await sylph.run("-a", "dot.png", "what is it?")
    assert done.out == "A dot.\n"
    (sylph.workspace / "dot.png").unlink()
    await sylph.run("-s", "last", "and now?")
    seen = base64.b64encode(PIXEL).decode()
    assert [seen in asked.body.decode() for asked in server.requests] == [True, True]
    assert_extends(server.requests)
    await sylph.run("retry", "last")
    assert seen in server.requests[2].body.decode()
    for command in ("replay", "verify"):
        checked = await sylph.run(command, "last")
        assert checked.code == 0, checked.out + checked.err


async def test_it_survives_being_moved_to_another_home(sylph: Sylph, model: Model, tmp_path: Path) -> None:
    (sylph.workspace / "a.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    await model([say("Empty.")])
    assert (await sylph.run("-a", "a.pdf", "what is it?")).code == 0
    await sylph.run("session", "export", "last", "-o", str(tmp_path / "out.ndjson"))
    other = Sylph(tmp_path / "other", sylph.workspace)
    imported = await other.run("session", "import", str(tmp_path / "out.ndjson"))
    assert imported.code == 0, imported.err
    assert (await other.run("verify", "last")).code == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "is empty"), (b"just text", "neither a picture"), (PIXEL[:-30], "cut off"), (None, "cannot be read"),
     (PIXEL[:8] + bytes(5_000_001), "may be attached")],
)  # fmt: skip
async def test_what_nobody_could_look_at_is_refused(sylph: Sylph, model: Model, data: bytes | None, said: str) -> None:
    server = await model([])
    if data is not None:
        (sylph.workspace / "x.png").write_bytes(data)
    done = await sylph.run("--attach", "x.png", "look")
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert server.requests == []


async def test_a_model_that_sees_nothing_is_named(sylph: Sylph, model: Model) -> None:
    (sylph.workspace / "dot.png").write_bytes(PIXEL)
    await model([say("I cannot see it.")])
    done = await sylph.run("-m", "openai-chat/gpt-3.5-turbo", "-a", "dot.png", "what is it?")
    assert "openai-chat/gpt-3.5-turbo takes no pictures" in done.err
