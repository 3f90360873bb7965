"""Sessions put aside and kept at hand, from the command line."""

from tests.flows.program import Model, Sylph
from tests.model_server import say


async def test_a_session_is_put_aside_and_pinned(sylph: Sylph, model: Model) -> None:
    await model([say("One."), say("Two.")])
    for text in ("first", "second"):
        assert (await sylph.run("run", text, "-m", "openai/scripted")).code == 0

    async def listed(*options: str) -> list[str]:
        return [one["title"] for one in (await sylph.run("session", "list", "--json", *options)).json]

    assert await listed() == ["second", "first"]
    first = (await sylph.run("session", "list", "--json")).json[1]["id"]
    assert (await sylph.run("session", "pin", first)).out == f"{first} is pinned.\n"
    assert await listed() == ["first", "second"], "pinned ones come first"
    assert "* first" in (await sylph.run("session", "list")).out
    assert (await sylph.run("session", "archive", first, "--json")).json == {"session": first, "archived": True}
    assert (await listed(), await listed("--archived")) == (["second"], ["first"])
    assert (await sylph.run("session", "unpin", first)).code == 0
    assert (await sylph.run("session", "unarchive", first)).out == f"{first} is in the list again.\n"
    assert await listed() == ["second", "first"], "to put it aside and take it up again is no news of it"
    assert (await sylph.run("session", "list", "--archived")).out == "No session is put aside.\n"
    assert (await sylph.run("session", "archive", "nobody")).code != 0
