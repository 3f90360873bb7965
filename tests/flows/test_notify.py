"""Notifications of the real program: shown, sent by webhook and by a program of the person's own, never lost."""

import sys

from tests.flows.program import Done, Model, Sylph, finished, killed
from tests.flows.sink import STALL, Sink
from tests.model_server import call, calls, say
from tests.patience import waiting

TELL = call("notify", title="Built", text="All 12 tests pass.", urgency="high")


def configure(sylph: Sylph, text: str) -> None:
    (sylph.home / "sylph" / "config.toml").write_text(f"probe = false\n[notify]\n{text}\n")


async def facts(sylph: Sylph, session: str) -> list[str]:
    shown = await sylph.run("session", "export", session)
    return [event["type"] for event in shown.events if event.get("type", "").startswith("delivery.")]


async def last(sylph: Sylph) -> str:
    return (await sylph.run("session", "list", "--json")).json[0]["id"]


async def replayed(sylph: Sylph) -> Done:
    return await sylph.run("replay", await last(sylph))


async def test_with_nothing_set_up_it_is_shown_and_confirmed(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    done = await sylph.run("tell me")
    assert (done.code, done.out) == (0, "Told.\n")
    assert "◆ Built\n  All 12 tests pass.\n" in done.err
    assert await facts(sylph, await last(sylph)) == ["delivery.recorded", "delivery.confirmed"]


async def test_the_terminal_rings(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    terminal = await sylph.open("tell me")
    await terminal.see("Told.")
    assert await terminal.end() == 0
    assert "\a" in terminal.raw


async def test_it_reaches_a_webhook_with_its_key(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    async with Sink() as sink:
        configure(sylph, f'webhook = "{sink.url}"')
        done = await sylph.run("tell me")
    session = await last(sylph)
    assert (done.code, done.out) == (0, "Told.\n")
    ((key, body),) = sink.got
    assert key == f"{session}.t1_c1.webhook"
    assert (body["title"], body["text"], body["urgency"], body["key"]) == ("Built", "All 12 tests pass.", "high", key)
    assert (await replayed(sylph)).code == 0


async def test_a_webhook_that_fails_first_gets_it_again_under_the_same_key(sylph: Sylph, model: Model) -> None:
    await model([TELL, call("shell", command=waiting("go")), say("Told.")])
    async with Sink(500, 200) as sink:
        configure(sylph, f'webhook = "{sink.url}"')
        process = await sylph.start("--mode", "trust", "tell me")
        await sink.until(2)
        (sylph.workspace / "go").touch()
        done = await finished(process)
    assert done.code == 0
    assert "not delivered by webhook: The webhook answered 500: no; trying again in 1.0 s" in done.err
    assert len(sink.keys) == 2
    assert len(set(sink.keys)) == 1
    assert (await replayed(sylph)).code == 0


async def test_what_is_refused_for_good_is_given_up_at_once_and_told(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    async with Sink(404) as sink:
        configure(sylph, f'webhook = "{sink.url}"')
        await sylph.run("tell me")
    found = (await sylph.run("diagnose", "last", "--json")).json["findings"]
    (told,) = [one for one in found if one["check"] == "deliveries"]
    assert (told["state"], "404" in told["message"]) == ("warn", True)
    assert len(sink.got) == 1
    assert sink.url not in str(found)


async def test_nothing_answers_and_later_resume_delivers_it(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    sink = Sink()
    configure(sylph, f'webhook = "{sink.url}"')
    done = await sylph.run("tell me")
    session = await last(sylph)
    assert (done.code, done.out) == (0, "Told.\n")
    assert f"1 notification could not be delivered yet: sylph resume {session}" in done.err
    left = (await sylph.run("status", "--json")).json["undelivered"]
    assert [(one["session"], one["title"]) for one in left] == [(session, "Built")]
    still = await sylph.run("resume")
    assert (still.code, still.out) == (1, f"{session}: 0 notifications delivered, 1 not yet, 0 given up.\n")
    async with sink:
        resumed = await sylph.run("resume")
    assert (resumed.code, resumed.out) == (0, f"{session}: 1 notification delivered, 0 not yet, 0 given up.\n")
    assert len(sink.got) == 1
    assert (await sylph.run("status", "--json")).json["undelivered"] == []
    assert (await replayed(sylph)).code == 0


async def test_killed_while_it_is_on_its_way_it_comes_again_with_the_same_key(sylph: Sylph, model: Model) -> None:
    await model([calls(("notify", {"title": "Built"}), ("shell", {"command": waiting("go")})), say("Told.")])
    async with Sink(STALL, 200) as sink:
        configure(sylph, f'webhook = "{sink.url}"')
        process = await sylph.start("--mode", "trust", "tell me")
        await sink.until(1)
        await killed(process)
        (sylph.workspace / "go").touch()
        await finished(process)
        done = await sylph.run("resume")
    assert (done.code, done.out) == (0, "Told.\n")
    assert len(sink.keys) == 2
    assert len(set(sink.keys)) == 1
    assert (await replayed(sylph)).code == 0


async def test_a_program_of_the_persons_own_shows_it(sylph: Sylph, model: Model) -> None:
    await model([call("notify", title="-x; touch gone", text="{title} & more"), say("Told.")])
    shows = "import os, sys; open('shown', 'w').write(repr(sys.argv[1:]) + os.environ['SYLPH_KEY'])"
    argv = [sys.executable, "-c", shows, "{urgency}", "{title}", "<{text}>"]
    await sylph.run(
        "config",
        "set",
        "notify.command",
        str(argv).replace("'", '"').replace('"shown", "w"', "'shown', 'w'").replace('["SYLPH_KEY"]', "['SYLPH_KEY']"),
    )
    await sylph.run("tell me")
    shown = (sylph.workspace / "shown").read_text()
    assert shown == f"['normal', ' -x; touch gone', '<{{title}} & more>']{await last(sylph)}.t1_c1.command"
    assert not (sylph.workspace / "gone").exists()


async def test_a_program_that_does_not_exist_is_told_and_holds_nothing_up(sylph: Sylph, model: Model) -> None:
    await model([TELL, say("Told.")])
    configure(sylph, 'command = ["no-such-program"]')
    done = await sylph.run("tell me")
    assert (done.code, done.out) == (0, "Told.\n")
    assert "not delivered by command: no-such-program cannot be started" in done.err


async def test_who_wants_to_know_is_called_when_it_asks_and_when_it_is_over(sylph: Sylph, model: Model) -> None:
    await model([call("ask_user", questions=[{"question": "Which colour?"}]), say("Any, then.")])
    async with Sink() as sink:
        configure(sylph, f'webhook = "{sink.url}"\non = ["asked", "ended"]')
        await sylph.run("paint it")
    assert [(body["why"], body["title"]) for _, body in sink.got] == [
        ("asked", "Sylph asks: Which colour?"),
        ("ended", "Sylph finished: paint it"),
    ]
    assert (await replayed(sylph)).code == 0


async def test_the_address_of_a_webhook_is_not_shown(sylph: Sylph) -> None:
    secret = "http://127.0.0.1:1/hook/very-secret-token"
    assert (await sylph.run("config", "set", "notify.webhook", secret)).code == 0
    for shown in (await sylph.run("config", "get", "notify.webhook"), await sylph.run("config")):
        assert "very-secret" not in shown.out
        assert "oken" in shown.out


async def test_a_wrong_setting_is_named(sylph: Sylph) -> None:
    wrong = await sylph.run("config", "set", "notify.on", "asked sometimes")
    assert wrong.code == 2
    assert "notify.on" in wrong.err
    assert (await sylph.run("config", "set", "notify.on", "asked ended")).code == 0
    assert (await sylph.run("config", "get", "notify.on")).out == '["asked","ended"]\n'


async def test_many_at_once_stay_in_order(sylph: Sylph, model: Model) -> None:
    wanted = [("notify", {"title": f"number {number}"}) for number in range(10)]
    await model([calls(*wanted), say("Told.")])
    async with Sink(503, 200) as sink:
        configure(sylph, f'webhook = "{sink.url}"')
        done = await sylph.run("tell me")
        if len(sink.got) < 11:
            await sylph.run("resume")
    assert done.code == 0
    assert [body["title"] for _, body in sink.got] == ["number 0", *(f"number {number}" for number in range(10))]
