"""Budgets hold: the worst case is put aside before a call, what it came to is counted after, no cap is passed."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.engine.stage import TOOLS, bodies, ended, story
from tests.patience import eventually, eventually_true

from sylph.core import commands, facts
from sylph.core.errors import BudgetSpent, ProviderError
from sylph.core.events import Event
from sylph.core.facts.budget import Budget, BudgetCaps, BudgetExceeded, BudgetStopped, BudgetWarned, LabelCaps
from sylph.core.messages import Usage
from sylph.core.provider import Chunk, ModelReply, ModelRequest, TextChunk
from sylph.engine.runtime.runtime import NewSession, Runtime
from sylph.testing import FakeClock, ScriptedProvider, begin_session, call_tool, play_turn, say, scripted_runtime

DOLLAR = 1_000_000
# A dollar for a million tokens of input, two for a million of output.
PRICES = (DOLLAR, 2 * DOLLAR)


def model(*lines: ModelReply | ProviderError) -> ScriptedProvider:
    return ScriptedProvider(lines, prices=PRICES)


def answer(text: str, input: int = 1000, output: int = 500) -> ModelReply:
    return say(text, usage=Usage(input=input, output=output))


def budget(**caps: BudgetCaps) -> Budget:
    return replace(Budget(answer=2000), **caps)


def holds(home: Path) -> int:
    with sqlite3.connect(home / "data" / "budget.db") as db:
        return db.execute("select count(*) from hold").fetchone()[0]


def total(home: Path, scope: str, name: str) -> tuple[int, ...]:
    with sqlite3.connect(home / "data" / "budget.db") as db:
        row = db.execute("select money, tokens, rounds from total where scope = ? and name = ?", (scope, name))
        return row.fetchone()


async def test_without_a_budget_no_file_is_made_and_no_answer_is_shortened(home: Path) -> None:
    provider = model(answer("Yes."))
    async with scripted_runtime(home, provider, budget=Budget()) as engine:
        await play_turn(engine, await begin_session(engine, home), "hello")
    assert not (home / "data" / "budget.db").exists()
    assert provider.requests[0].max_tokens is None


async def test_what_a_call_may_take_is_in_the_log_before_it_and_settled_after_it(home: Path) -> None:
    provider = model(answer("Yes."))
    async with scripted_runtime(home, provider, budget=budget(session=BudgetCaps(money=DOLLAR))) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "hello")
    (asked,) = bodies(events, facts.ModelRequested)
    assert provider.requests[0].max_tokens == asked.answer == 2000
    unlimited = asked.bytes - len(",2000")
    assert asked.reserved == -(-unlimited // 2) + 2000 * 2
    assert total(home, "session", session) == (1000 + 500 * 2, 1500, 1)
    assert holds(home) == 0


async def test_at_four_fifths_it_warns_once_and_at_the_end_it_stops_with_what_to_do(home: Path) -> None:
    lines = [answer(f"{number}") for number in range(20)]
    # Each answer costs 2,000 micro-dollars; what a call may take at the most is a little more.
    async with scripted_runtime(home, model(*lines), budget=budget(session=BudgetCaps(money=20_000))) as engine:
        session = await begin_session(engine, home)
        ends = [ended(await play_turn(engine, session, f"say {number}")) for number in range(12)]
    log = await story_of(home, session)
    (warned,) = bodies(log, BudgetWarned)
    assert (warned.scope, warned.what, warned.cap) == ("session", "money", 20_000)
    assert 16_000 <= warned.used < 20_000
    assert {end.outcome for end in ends} == {"finished", "budget"}
    trouble = ends[-1].trouble
    assert trouble
    assert trouble.kind == "budget_spent"
    assert f'sylph -s {session} --budget 0.04 "go on"' in trouble.next
    assert total(home, "session", session)[0] <= 20_000
    assert len(bodies(log, BudgetStopped)) == sum(end.outcome == "budget" for end in ends)


async def story_of(home: Path, session: str) -> list[Event]:
    async with scripted_runtime(home, []) as engine:
        return engine.log.read_events(session)


async def test_the_session_goes_on_when_the_cap_was_raised(home: Path) -> None:
    async with scripted_runtime(
        home, model(answer("1"), answer("2")), budget=budget(session=BudgetCaps(money=5_000))
    ) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "one")
        assert ended(await play_turn(engine, session, "two")).outcome == "budget"
        await engine.send(session, commands.SetBudget(money=DOLLAR))
        assert ended(await play_turn(engine, session, "two")).outcome == "finished"


async def test_a_cap_of_the_session_itself_survives_a_restart(home: Path) -> None:
    new = NewSession(workspace=home, model="scripted/model", mode="trust", budget=1_000)
    async with scripted_runtime(home, model(answer("1")), budget=budget(session=BudgetCaps(money=DOLLAR))) as engine:
        session = await engine.create_session(new)
    async with scripted_runtime(home, model(answer("1")), budget=budget(session=BudgetCaps(money=DOLLAR))) as engine:
        end = ended(await play_turn(engine, session, "one"))
    assert end.outcome == "budget"


async def test_an_answer_is_made_shorter_before_it_is_refused(home: Path) -> None:
    provider = model(answer("1", output=10), answer("2", output=10))
    async with scripted_runtime(home, provider, budget=budget(session=BudgetCaps(money=4_200))) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "one")
        await play_turn(engine, session, "two")
    first, second = (request.max_tokens or 0 for request in provider.requests)
    assert 1024 <= second < first <= 2000


@pytest.mark.parametrize(
    ("caps", "what"),
    [(BudgetCaps(tokens=4_000), "tokens"), (BudgetCaps(rounds=2), "rounds"), (BudgetCaps(seconds=3), "seconds")],
)
@pytest.mark.parametrize("scope", ["session", "tree", "day", "month"])
async def test_every_scope_holds_for_everything(home: Path, scope: str, caps: BudgetCaps, what: str) -> None:
    lines = [call_tool("much", text="x") for _ in range(6)]
    lines = [
        ModelReply(text="", finish="calls", calls=line.calls, usage=Usage(input=500, output=500)) for line in lines
    ]
    clock = FakeClock()
    async with scripted_runtime(
        home, Slow(lines, clock), tools=TOOLS, budget=budget(**{scope: caps}), clock=clock
    ) as engine:
        end = ended(await play_turn(engine, await begin_session(engine, home), "go"))
    assert (end.outcome, end.trouble and end.trouble.details["what"]) == ("budget", what)
    assert end.trouble
    assert end.trouble.details["scope"] == scope


@pytest.mark.parametrize(("caps", "what"), [(BudgetCaps(tokens=3_000), "tokens"), (BudgetCaps(rounds=2), "rounds")])
async def test_a_turn_has_a_budget_and_the_next_one_has_it_again(home: Path, caps: BudgetCaps, what: str) -> None:
    wanted = call_tool("much", text="x").calls
    used = Usage(input=500, output=500)
    lines = [ModelReply(text="", finish="calls", calls=wanted, usage=used) for _ in range(2)]
    async with scripted_runtime(home, [*lines, say("Done.")], tools=TOOLS, budget=budget(turn=caps)) as engine:
        session = await begin_session(engine, home)
        first, second = ended(await play_turn(engine, session, "go")), ended(await play_turn(engine, session, "go on"))
    assert (first.outcome, first.trouble and first.trouble.details["what"]) == ("budget", what)
    assert second.outcome == "finished"


class Slow(ScriptedProvider):
    """A model that takes two seconds for each answer."""

    def __init__(self, lines: list[ModelReply], clock: FakeClock) -> None:
        super().__init__(lines)
        self._clock = clock

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:
        self._clock.advance(2)
        async for chunk in super().stream(request, body):
            yield chunk


async def test_forks_share_the_budget_of_their_tree(home: Path) -> None:
    async with scripted_runtime(home, model(*[answer("x")] * 4), budget=budget(tree=BudgetCaps(rounds=2))) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "one")
        fork = await engine.fork_session(session)
        await play_turn(engine, fork, "two")
        assert ended(await play_turn(engine, session, "three")).outcome == "budget"


async def test_a_label_has_a_budget_of_its_own(home: Path) -> None:
    caps = Budget(labels={"nightly": LabelCaps(day=BudgetCaps(rounds=1))})
    async with scripted_runtime(home, model(*[answer("x")] * 4), budget=caps) as engine:
        new = NewSession(workspace=home, model="scripted/model", mode="trust", label="nightly")
        first, second, other = (
            await engine.create_session(new),
            await engine.create_session(new),
            await begin_session(engine, home),
        )
        await play_turn(engine, first, "one")
        assert ended(await play_turn(engine, second, "two")).outcome == "budget"
        assert ended(await play_turn(engine, other, "three")).outcome == "finished"


async def test_a_model_without_a_price_is_not_asked_where_money_is_limited(home: Path) -> None:
    provider = ScriptedProvider([answer("x")])
    async with scripted_runtime(home, provider, budget=budget(day=BudgetCaps(money=DOLLAR))) as engine:
        end = ended(await play_turn(engine, await begin_session(engine, home), "one"))
    assert (end.outcome, end.trouble and end.trouble.kind) == ("failed", "price_unknown")
    assert provider.requests == []


async def test_a_refused_attempt_costs_nothing_and_a_cut_one_the_most_it_can(home: Path) -> None:
    lines = [ProviderError("rate_limited", "Wait."), ProviderError("cut", "It broke off."), answer("Yes.")]
    async with scripted_runtime(home, model(*lines), budget=budget(session=BudgetCaps(money=DOLLAR))) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "hello")
        summary = await engine.find_session(session)
    (asked,) = bodies(events, facts.ModelRequested)
    free, cut = bodies(events, facts.ModelFailed)
    assert (free.usage, free.cost) == (None, None)
    assert asked.reserved
    assert cut.cost
    # The second attempt is put aside for itself, with the limit among its bytes.
    assert asked.reserved <= cut.cost < asked.reserved + 5
    assert cut.usage
    assert cut.usage.output == 2000
    assert total(home, "session", session)[0] == cut.cost + 2000 == summary.cost
    assert summary.guessed == cut.cost


async def test_an_answer_that_costs_more_than_foreseen_is_told_and_counted_as_it_is(home: Path) -> None:
    async with scripted_runtime(
        home, model(answer("x", output=9000)), budget=budget(session=BudgetCaps(money=20_000))
    ) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "one")
    told = bodies(events, BudgetExceeded)
    assert [(each.what, each.used) for each in told] == [("money", 19_000), ("tokens", 10_000)]
    assert total(home, "session", session)[0] == 19_000


class Deaf(ScriptedProvider):
    """A service that cannot be told how long its answer may be."""

    def body(self, request: ModelRequest) -> bytes:
        return super().body(replace(request, max_tokens=None))


async def test_a_service_that_takes_no_limit_is_reckoned_with_at_its_longest(home: Path) -> None:
    provider = Deaf([answer("x", output=9000)], prices=PRICES)
    async with scripted_runtime(home, provider, budget=budget(session=BudgetCaps(money=DOLLAR))) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "one")
    (asked,) = bodies(events, facts.ModelRequested)
    assert provider.requests[0].max_tokens is None
    assert asked.reserved
    assert asked.reserved > 65_536 * 2
    assert bodies(events, BudgetExceeded) == []
    assert holds(home) == 0


class Killed(ScriptedProvider):
    """A model that falls silent for ever."""

    async def stream(self, request: ModelRequest, body: bytes) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002
        self.requests.append(request)
        os.close(os.open(os.environ["SYLPH_TEST_DIES"], os.O_CREAT))
        await asyncio.Event().wait()
        yield TextChunk("")


async def test_stopped_in_mid_answer_it_is_counted_at_the_most(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYLPH_TEST_DIES", str(home / "asked"))
    async with scripted_runtime(
        home, Killed([], prices=PRICES), budget=budget(session=BudgetCaps(money=DOLLAR))
    ) as engine:
        session = await begin_session(engine, home)
        await engine.send(session, commands.Send(text="go"))
        await eventually((home / "asked").exists)
        await engine.send(session, commands.Interrupt(reason="enough"))
        await engine.wait_until_idle(session)
        (failed,) = [fact for _, _, fact in engine.log.find_facts(session, facts.ModelFailed)]
        (asked,) = [fact for _, _, fact in engine.log.find_facts(session, facts.ModelRequested)]
    assert failed.cost == asked.reserved == total(home, "session", session)[0]
    assert holds(home) == 0


async def test_killed_in_mid_answer_it_stays_put_aside_and_the_next_process_writes_it_down(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYLPH_TEST_DIES", str(home / "asked"))
    session = await asyncio.to_thread(_die, home)
    assert holds(home) == 1
    caps = budget(session=BudgetCaps(money=DOLLAR))
    async with scripted_runtime(home, model(answer("Done.")), budget=caps) as engine:
        await engine.send(session, commands.Continue())
        end = ended(await story(engine, session))
        (lost,) = [fact for _, _, fact in engine.log.find_facts(session, facts.ModelFailed)]
        asked = [fact for _, _, fact in engine.log.find_facts(session, facts.ModelRequested)]
        # Whoever looks next sees that the log has it, and gives back what was put aside.
        other = await begin_session(engine, home)
        await engine.send(other, commands.SetBudget(money=1))
        await play_turn(engine, other, "hello")
    assert end.outcome == "finished"
    assert (lost.trouble.kind, lost.cost) == ("interrupted", asked[-1].reserved)
    assert total(home, "session", session)[0] == (lost.cost or 0) + 2000
    assert holds(home) == 0


def _die(home: Path) -> str:
    """A process that is killed while its model answers."""
    pid = os.fork()
    if not pid:
        try:
            asyncio.run(_ask_for_ever(home))
        finally:
            os._exit(1)
    eventually_true((home / "asked").exists)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return (home / "session").read_text()


async def _ask_for_ever(home: Path) -> None:
    engine = scripted_runtime(home, Killed([], prices=PRICES), budget=budget(session=BudgetCaps(money=DOLLAR)))
    session = await begin_session(engine, home)
    (home / "session").write_text(session)
    await engine.send(session, commands.Send(text="go"))
    await asyncio.Event().wait()


async def test_many_calls_at_once_wait_for_each_other_instead_of_failing(home: Path) -> None:
    """There is room for two worst cases at a time; what the calls really need fits."""
    lines = [answer("x", input=100, output=10) for _ in range(12)]
    async with scripted_runtime(home, model(*lines), budget=budget(day=BudgetCaps(money=11_000))) as engine:
        sessions = [await begin_session(engine, home) for _ in range(12)]
        ends = await asyncio.gather(*(_end(engine, session) for session in sessions))
    assert {end.outcome for end in ends} == {"finished"}


async def _end(engine: Runtime, session: str) -> facts.TurnEnded:
    return ended(await play_turn(engine, session, "hello"))


async def test_a_summary_counts_too_and_a_turn_that_cannot_pay_for_it_ends(home: Path) -> None:
    long = Usage(input=900, output=50)
    provider = ScriptedProvider([say("A long story. " * 100, usage=long), say("More.", usage=long)], window=1000)
    async with scripted_runtime(home, provider, budget=budget(session=BudgetCaps(rounds=1))) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "tell me a story")
        assert ended(await play_turn(engine, session, "and now?")).outcome == "budget"
        with pytest.raises(BudgetSpent):
            await engine.send(session, commands.Compact())
        await engine.wait_until_idle(session)
        await engine.send(session, commands.Rename(title="still there"))
        assert (await engine.find_session(session)).state == "idle"


async def test_a_summary_is_put_aside_for_like_any_other_call(home: Path) -> None:
    long = Usage(input=900, output=50)
    lines = [
        say("A long story. " * 100, usage=long),
        say("A long story about this and that, and many other things.", usage=long),
        say("On.", usage=long),
    ]
    async with scripted_runtime(
        home, ScriptedProvider(lines, window=1000), budget=budget(session=BudgetCaps(rounds=9))
    ) as engine:
        session = await begin_session(engine, home)
        await play_turn(engine, session, "tell me a story")
        events = await play_turn(engine, session, "and now?")
    assert [asked.role for asked in bodies(events, facts.ModelRequested)] == ["background", "main"]
    assert total(home, "session", session)[2] == 3


async def test_a_retry_is_put_aside_for_itself_and_is_not_made_where_that_does_not_fit(home: Path) -> None:
    provider = model(ProviderError("cut", "It broke off."), answer("Never said."))
    async with scripted_runtime(home, provider, budget=budget(session=BudgetCaps(money=5_500))) as engine:
        session = await begin_session(engine, home)
        events = await play_turn(engine, session, "hello")
    (failed,) = bodies(events, facts.ModelFailed)
    assert failed.retry_ms is not None
    assert len(bodies(events, BudgetStopped)) == 1
    assert ended(events).outcome == "budget"
    assert len(provider.requests) == 1
    assert total(home, "session", session)[0] == failed.cost
    assert holds(home) == 0
