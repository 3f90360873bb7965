"""Budgets of the real program: put aside, settled, warned of, stopped at, survived and told."""

from tests.flows.program import Model, Sylph, finished
from tests.flows.sink import Sink
from tests.model_server import Step, begin, call, say

# A dollar for a million tokens in, three for a million out: an answer of these costs three cents.
USED = {"prompt_tokens": 6_000, "completion_tokens": 8_000, "total_tokens": 14_000}
PRICES = """\
probe = false
[providers.openai.models.small]
price_in = 1.0
price_out = 3.0
"""


def configure(sylph: Sylph, text: str = "") -> None:
    (sylph.home / "sylph" / "config.toml").write_text(PRICES + text)


def answer(text: str) -> Step:
    return say(text, usage=USED)


async def last(sylph: Sylph) -> str:
    return (await sylph.run("session", "list", "--json")).json[0]["id"]


async def test_a_session_stops_at_its_budget_and_goes_on_when_it_is_raised(sylph: Sylph, model: Model) -> None:
    server = await model([answer("One."), answer("Two."), answer("Three.")])
    configure(sylph)
    first = await sylph.run("-m", "openai/small", "--budget", "0.068", "one")
    session = await last(sylph)
    assert (first.code, first.out) == (0, "One.\n")
    assert "budget of this session: $0.0680" in first.err
    assert f"{session} · 1 round · 6,000 tokens in, 8,000 out, $0.0300 · " in first.err
    assert "session $0.03 of $0.0680" in first.err
    assert server.requests[-1].json["max_tokens"] == 8192
    second = await sylph.run("-s", session, "two")
    assert (second.code, second.out) == (0, "Two.\n")
    assert "! 88 % of the budget of this session is used: $0.06 of $0.0680" in second.err
    third = await sylph.run("-s", session, "three")
    assert third.code == 6
    assert "The next call does not fit into the budget of this session: $0.06 of $0.0680 used (88 %)" in third.err
    assert f'sylph -s {session} --budget 0.14 "go on"' in third.err
    assert "budget.session.money" not in third.err
    assert len(server.requests) == 2
    shown = await sylph.run("session", "show", session)
    assert "budget of this session: $0.06 of $0.0680 (88 %)" in shown.out
    raised = await sylph.run("-s", session, "--budget", "0.14", "go on")
    assert (raised.code, raised.out) == (0, "Three.\n")
    kinds = [event["type"] for event in (await sylph.run("session", "export", session)).events if "type" in event]
    assert [kind for kind in kinds if "budget" in kind] == [
        *("session.budget", "budget.warned", "budget.stopped", "session.budget"),
    ]
    assert (await sylph.run("replay", session)).code == 0


async def test_a_day_has_a_budget_for_all_sessions_and_a_webhook_is_called(sylph: Sylph, model: Model) -> None:
    await model([answer("One."), answer("Two."), answer("Three.")])
    async with Sink() as sink:
        configure(sylph, f'[notify]\nwebhook = "{sink.url}"\non = ["budget"]\n')
        assert (await sylph.run("config", "set", "budget.day.money", "0.068")).code == 0
        for text in ("one", "two"):
            assert (await sylph.run("-m", "openai/small", text)).code == 0
        third = await sylph.run("-m", "openai/small", "three")
    assert third.code == 6
    assert "or wait for the next day" in third.err
    assert [(body["why"], body["title"].partition(" of the budget")[0]) for _, body in sink.got] == [
        ("budget", "Sylph has used 80 %"),
        ("budget", third_title(sink)),
    ]
    status = (await sylph.run("status", "--json")).json
    (row,) = status["budgets"]
    assert (row["scope"], row["used"], row["cap"], row["held"]) == ("day", 60_000, 68_000, 0)
    assert "budget" in (await sylph.run("status")).out
    assert (await sylph.run("replay", await last(sylph))).code == 0


def third_title(sink: Sink) -> str:
    title = sink.got[-1][1]["title"]
    assert title.startswith("Sylph has stopped: the budget of 20")
    return title


async def test_killed_in_mid_answer_it_counts_and_is_told_as_unknown(sylph: Sylph, model: Model) -> None:
    server = await model([begin("I think for a long time."), answer("Done.")])
    configure(sylph, "[budget.month]\nmoney = 5\n")
    process = await sylph.start("-m", "openai/small", "think")
    await server.until(lambda: bool(server.requests))
    process.kill()
    await finished(process)
    session = await last(sylph)
    (month,) = (await sylph.run("cost", "--json")).json["budgets"]
    assert (month["used"], month["unknown"] > 16_384) == (0, True)
    resumed = await sylph.run("resume", session)
    assert (resumed.code, resumed.out) == (0, "Done.\n")
    told = (await sylph.run("cost", "--json", "--by", "session")).json
    assert told["rows"][0]["guessed"] == month["unknown"]
    assert (told["rows"][0]["cost"], told["rows"][0]["unknown"]) == (month["unknown"] + 30_000, 1)
    assert told["budgets"][0]["used"] == told["total"]["cost"]
    assert "is unknown, counted at the most it can have been: 1 call" in (await sylph.run("cost")).out
    assert (await sylph.run("replay", session)).code == 0


async def test_doctor_mends_what_was_spent_from_the_log(sylph: Sylph, model: Model) -> None:
    await model([answer("One."), answer("Two.")])
    configure(sylph, "[budget.day]\nmoney = 5\n")
    await sylph.run("-m", "openai/small", "one")
    ledger = sylph.home / "sylph" / "data" / "budget.db"
    assert "what was spent agrees with the log in 1 session" in (await sylph.run("doctor")).out
    for path in ledger.parent.glob("budget.db-*"):
        path.unlink()
    ledger.write_bytes(b"this is not a database" * 100)
    refused = await sylph.run("-m", "openai/small", "two")
    assert refused.code == 7
    assert "sylph doctor" in refused.err
    assert "made anew" in (await sylph.run("doctor")).out
    assert (await sylph.run("-m", "openai/small", "two")).code == 0
    assert (await sylph.run("status", "--json")).json["budgets"][0]["used"] == 60_000


async def test_cost_is_shown_from_every_side(sylph: Sylph, model: Model) -> None:
    await model([call("list", how={"usage": USED}), answer("One."), answer("Two.")])
    configure(sylph)
    await sylph.run("-m", "openai/small", "--label", "nightly", "one")
    await sylph.run("-m", "openai/small", "two")
    days = await sylph.run("cost")
    assert "$0.0900" in days.out
    assert "█" * 24 in days.out
    assert not (sylph.home / "sylph" / "data" / "budget.db").exists()
    wanted = {
        "session": {60_000: 1, 30_000: 1},
        "model": {90_000: 1},
        "role": {90_000: 1},
        "faculty": {60_000: 1, 30_000: 1},
        "tool": {60_000: 1, 30_000: 1},
    }
    for by, rows in wanted.items():
        told = (await sylph.run("cost", "--by", by, "--since", "all", "--json")).json
        assert {row["cost"]: 1 for row in told["rows"]} == rows
        assert told["total"]["cost"] == 90_000
    assert {row["key"] for row in (await sylph.run("cost", "--by", "faculty", "--json")).json["rows"]} == {
        "talk",
        "workspace",
    }
    wrong = await sylph.run("cost", "--since", "someday")
    assert (wrong.code, "--since 7d" in wrong.err) == (2, True)
    assert (await sylph.run("cost", "--since", "2999-01-01")).out == "Nothing was spent in this time.\n"


async def test_a_label_has_a_budget_and_must_be_a_word(sylph: Sylph, model: Model) -> None:
    await model([answer("One."), answer("Two.")])
    configure(sylph)
    assert (await sylph.run("config", "set", "budget.labels.nightly.day.rounds", "1")).code == 0
    assert (await sylph.run("-m", "openai/small", "--label", "nightly", "one")).code == 0
    stopped = await sylph.run("-m", "openai/small", "--label", "nightly", "two")
    assert stopped.code == 6
    assert "sylph config set budget.labels.nightly.day.rounds 3" in stopped.err
    assert "1 of 1 round." in stopped.err
    assert (await sylph.run("-m", "openai/small", "--label", "other", "two")).code == 0
    for label in ("two words", ""):
        assert (await sylph.run("-m", "openai/small", "--label", label, "three")).code == 2


async def test_a_wrong_budget_is_refused_before_anything_is_done(sylph: Sylph, model: Model) -> None:
    server = await model([answer("One.")])
    for amount in ("-1", "0", "much", "nan", "inf"):
        done = await sylph.run("--budget", amount, "one")
        assert (done.code, "is no amount of dollars" in done.err) == (2, True)
    assert (await sylph.run("config", "set", "budget.day.money", "-5")).code == 2
    for nothing in ("none", "null"):
        unset = await sylph.run("config", "set", "budget.session.money", nothing)
        assert (unset.code, "sylph config unset budget.session.money" in unset.err) == (2, True)
    assert server.requests == []


async def test_the_chat_shows_and_sets_a_budget(sylph: Sylph, model: Model) -> None:
    await model([answer("One."), answer("Two.")])
    configure(sylph)
    done = await sylph.run("chat", "-m", "openai/small", stdin=b"/budget 0.037\none\n/budget\ntwo\n/budget x\n/quit\n")
    assert "this session  $0.03 of $0.0370 (81 %)" in done.out + done.err
    assert "The next call does not fit into the budget of this session" in done.out + done.err
    assert "is no amount of dollars" in done.out + done.err


async def test_what_a_stop_proposes_works_at_once(sylph: Sylph, model: Model) -> None:
    await model([answer("One."), answer("Two.")])
    text = PRICES.replace("1.0", "5").replace("3.0", "20")
    (sylph.home / "sylph" / "config.toml").write_text(text)
    refused = await sylph.run("-m", "openai/small", "--budget", "0.01", "one")
    assert refused.code == 6
    assert "does not fit into the budget of this session: $0.00 of $0.01 used (0 %)" in refused.err
    least = float(refused.err.partition("would have to be $")[2].split()[0])
    session = await last(sylph)
    assert (await sylph.run("-s", session, "--budget", f"{least - 0.001:.4f}", "one")).code == 6
    (step,) = [line for line in refused.err.splitlines() if "--budget" in line]
    assert (await sylph.run("-s", session, "--budget", step.split("--budget ")[1].split()[0], "go on")).code == 0
    for scope in ("day", "month"):
        # More than this is spent already: twice the cap would not do.
        await sylph.run("config", "set", f"budget.{scope}.money", "0.02")
        over = await sylph.run("-m", "openai/small", "one")
        assert (over.code, "is used up" in over.err) == (6, True)
        (step,) = [line for line in over.err.splitlines() if f"config set budget.{scope}.money" in line]
        assert f'sylph -s {await last(sylph)} "go on"' in over.err
        assert (await sylph.run("config", "set", f"budget.{scope}.money", step.split()[-1])).code == 0
    assert (await sylph.run("-s", await last(sylph), "go on")).code == 0


async def test_a_call_that_was_killed_and_dropped_is_seen_and_belongs_to_its_turn(sylph: Sylph, model: Model) -> None:
    server = await model([begin("I think for a long time."), answer("Done.")])
    configure(sylph, "[budget.month]\nmoney = 5\n")
    process = await sylph.start("-m", "openai/small", "think")
    await server.until(lambda: bool(server.requests))
    process.kill()
    await finished(process)
    session = await last(sylph)
    assert (await sylph.run("resume", session, "--drop")).code == 0
    held = (await sylph.run("cost", "--json")).json
    (row,) = held["rows"]
    assert (row["key"], row["calls"], row["cost"]) == ("unknown", 1, held["budgets"][0]["unknown"])
    assert held["total"]["guessed"] == row["cost"] > 16_384
    assert "is unknown, counted at the most it can have been: 1 call" in (await sylph.run("cost")).out
    after = await sylph.run("-s", session, "again")
    assert "a call of an earlier turn may have been charged" in after.err
    assert "1 round · 6,000 tokens in, 8,000 out, $0.0300" in after.err
    told = (await sylph.run("cost", "--json")).json
    assert told["total"]["cost"] == row["cost"] + 30_000 == told["budgets"][0]["used"]
    assert [each["key"] for each in told["rows"]] != ["unknown"]
    tasks = (await sylph.run("task", "list", "--json")).json
    assert sorted(task["cost"] for task in tasks) == sorted([row["cost"], 30_000])
    assert (await sylph.run("replay", session)).code == 0
    assert (await sylph.run("doctor")).out.count("what was spent agrees with the log") == 1


async def test_a_model_without_a_price_is_a_fault_of_the_configuration(sylph: Sylph) -> None:
    (sylph.home / "sylph" / "config.toml").write_text("probe = false\n")
    sylph.environ.update(OPENAI_BASE_URL="http://nowhere.invalid/v1", OPENAI_API_KEY="a-key-for-tests")
    done = await sylph.run("-m", "openai/nobody-knows", "--budget", "1", "one")
    assert (done.code, "price_in" in done.err) == (2, True)
