"""A secret that slipped in is taken out, through the real program."""

from tests.flows.program import Model, Sylph
from tests.model_server import call, say


async def test_a_secret_is_erased_everywhere_and_the_chain_holds(sylph: Sylph, model: Model) -> None:
    await model([call("shell", command="echo hunter2-is-it"), say("The password is hunter2-is-it.")])
    await sylph.run("--mode", "trust", "my password is hunter2-is-it")
    erased = await sylph.run("erase", "last", "--why", "a password", stdin=b"hunter2-is-it\n")
    assert (erased.code, erased.out.startswith("Erased in")) == (0, True)
    shown, verified = await sylph.run("session", "show", "last", "--events"), await sylph.run("verify")
    assert "hunter2" not in shown.out
    assert "[erased]" in shown.out
    assert "every chain holds" in verified.out
    kept = [path for path in (sylph.home / "sylph" / "data").rglob("*") if path.is_file() and path.stat().st_size]
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]


async def test_a_secret_is_never_an_argument_and_never_empty(sylph: Sylph) -> None:
    assert (await sylph.run("erase", "last", stdin=b"\n")).code == 2
