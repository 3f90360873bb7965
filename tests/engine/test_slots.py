"""Who gets to a model first when not all can."""

import asyncio

from hypothesis import given
from hypothesis import strategies as some

from sylph.engine.model.concurrency_limit import AGEING, BACKGROUND, PERSON, WORKER, ConcurrencyLimiter


async def hold(slots: ConcurrencyLimiter, priority: int, name: str, order: list[str], go: asyncio.Event) -> None:
    async with slots.hold_slot(priority):
        order.append(name)
        await go.wait()


async def test_work_behind_never_holds_the_last_slot() -> None:
    slots, order, go = ConcurrencyLimiter(2), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(hold(slots, BACKGROUND, f"b{number}", order, go)) for number in range(3)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(hold(slots, PERSON, "person", order, go)))
    await asyncio.sleep(0)
    assert order == ["b0", "person"]
    go.set()
    await asyncio.gather(*tasks)
    assert order == ["b0", "person", "b1", "b2"]


async def test_who_waits_long_rises_but_not_above_people() -> None:
    now = [0.0]
    slots, order, go = ConcurrencyLimiter(1, lambda: now[0]), list[str](), asyncio.Event()
    tasks = [asyncio.create_task(hold(slots, PERSON, "first", order, go))]
    await asyncio.sleep(0)
    for name, priority, at in (("old", BACKGROUND, 0.0), ("worker", WORKER, AGEING), ("person", PERSON, 3 * AGEING)):
        now[0] = at
        tasks.append(asyncio.create_task(hold(slots, priority, name, order, go)))
        await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*tasks)
    assert order == ["first", "person", "old", "worker"]


calls = some.lists(some.tuples(some.sampled_from([PERSON, WORKER, BACKGROUND]), some.booleans()), max_size=12)


@given(calls, some.integers(1, 4))
def test_no_slot_is_lost_or_made(wanted: list[tuple[int, bool]], limit: int) -> None:
    """Whoever gives up while waiting or while being let in leaves the rest as it was."""

    async def play() -> None:
        slots, go, running = ConcurrencyLimiter(limit), asyncio.Event(), list[int]()
        tasks: list[asyncio.Task[None]] = []

        async def one(priority: int) -> None:
            async with slots.hold_slot(priority):
                running.append(priority)
                assert len(running) <= limit
                try:
                    await go.wait()
                finally:
                    running.remove(priority)

        for priority, leaves in wanted:
            tasks.append(asyncio.create_task(one(priority)))
            await asyncio.sleep(0)
            if leaves:
                tasks[len(tasks) // 2].cancel()
        go.set()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [end for end in ends if isinstance(end, AssertionError)]
        go.clear()
        tasks = [asyncio.create_task(one(PERSON)) for _ in range(limit)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(running) == limit
        go.set()
        await asyncio.gather(*tasks)

    asyncio.run(play())
