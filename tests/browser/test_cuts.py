"""However often the line is cut, the page reloaded or the server killed: it ends in the page that anybody else sees."""

import asyncio
import random
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser.person import Person
from tests.http.served import Served
from tests.model_server import Asked, Step, call, say

TEXT = "\n\n".join(f"{number}. This is **paragraph** {number}, with `code` in it." for number in range(12))
STEPS = (
    Step(text="I look first. " * 8, calls=(("list", {"path": "."}),), delay=0.03, reasoning="Where am I? " * 8),
    call("write", path="one.txt", content="one\n" * 30, how={"delay": 0.03}),
    call("shell", command="for n in 1 2 3 4 5 6; do echo line $n; sleep 0.1; done"),
    say(TEXT, delay=0.02),
)


def script(asked: Asked) -> Step:
    """By what was done already: whoever asks again hears the same again."""
    items = asked.json["messages"]
    return STEPS[min(sum(item["role"] == "tool" for item in items), len(STEPS) - 1)]


class House:
    """A server that comes back at its old place."""

    def __init__(self, served: Served) -> None:
        self._served, self._process = served, served.process
        self.mine: list[Process] = []

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()
        port = str(urlsplit(self._served.url).port)
        self._process = await self._served.sylph.start("serve", "--port", port)
        self.mine.append(self._process)
        assert self._process.stdout
        await self._process.stdout.readline()

    async def end(self) -> None:
        for process in self.mine:
            if process.returncode is None:
                process.terminate()
            await process.communicate()


@pytest_asyncio.fixture(loop_scope="session")
async def house(served: Served) -> AsyncGenerator[House, None]:
    made = House(served)
    yield made
    await made.end()


async def text(person: Person) -> list[str]:
    """What the page says."""
    await person.settle()
    return [await person.page.locator(place).first.inner_text() for place in ("main", "header")]


@pytest.mark.alone
@pytest.mark.lengthy
@pytest.mark.script.with_args(script)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_schedule_of_cuts_ends_in_the_same_page(person: Person, house: House, seed: int) -> None:
    page, chance = person.page, random.Random(seed)
    made = await person.served.session(title="Cut", mode="trust")
    await page.goto(f"/chat/{made['id']}")
    await person.say("Do it all.")
    # Each way at least once, in any order.
    acts = ["kill", "away", "reload", "away", "reload"]
    chance.shuffle(acts)
    for act in acts:
        await asyncio.sleep(chance.uniform(0.1, 0.9))
        if act == "kill":
            await house.kill()
        elif act == "reload":
            await page.reload()
        else:
            await page.context.set_offline(True)
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            await page.context.set_offline(False)
    await expect(page.get_by_text("paragraph 11")).to_be_visible()
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    seen = await text(person)
    fresh = Person(await page.context.new_page(), person.served)
    await fresh.page.goto(page.url)
    await expect(fresh.page.get_by_text("paragraph 11")).to_be_visible()
    assert seen == await text(fresh)
    assert "Do it all." in seen[0] or await page.locator(".row").count()
    person.complaints = [said for said in person.complaints if "ERR_INTERNET_DISCONNECTED" not in said]
