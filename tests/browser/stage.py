"""A small project and a day's work in it, for whoever looks at every page."""

import base64
import struct
import subprocess
import zlib
from typing import Any

from playwright.async_api import Locator, Page, expect
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.http.served import Served
from tests.model_server import Step, calls, fail, say

PRICES = '''"""What things cost in the shop."""


def discounted(price: float, percent: float) -> float:
    return price + price * percent / 100
'''
TEST = """import unittest

from prices import discounted


class Discount(unittest.TestCase):
    def test_ten_percent(self):
        self.assertEqual(discounted(50, 10), 45)
"""
README = """# Shop

Prices, orders and **receipts** of a small shop.

- `prices.py`: what things cost
- `test_prices.py`: what must hold
"""
FOUND = """The discount is **added** instead of taken off. In `prices.py`:

```python
def discounted(price: float, percent: float) -> float:
    return price + price * percent / 100
```

| percent | wanted | given |
|--------:|-------:|------:|
|      10 |     45 |    55 |
|      50 |     25 |    75 |

I change the sign and run the test again.
"""
THOUGHT = (
    "The test expects 45 for 50 less ten percent. 55 comes back, so the sign must be wrong. One line is to change."
)
PLAN = ("Read the failing test", "Find the cause", "Repair it", "Run the tests")
REPAIR = {"path": "prices.py", "old": "price + price * percent", "new": "price - price * percent"}
ASK = {
    "questions": [
        {
            "question": "The receipt rounds to whole cents. Shall prices do that as well?",
            "choices": ["Yes, round prices too", "No, leave them exact"],
            "free_text": True,
        }
    ]
}
DONE = "`discounted` takes the discount off now, and all tests pass. Prices stay exact, as you wished."
USAGE = {"prompt_tokens": 2140, "completion_tokens": 180, "total_tokens": 2320}


def plan(done: int) -> dict[str, Any]:
    status = ["done"] * done + ["doing"] * (done < len(PLAN)) + ["pending"] * len(PLAN)
    return {"steps": [{"text": text, "status": state} for text, state in zip(PLAN, status, strict=False)]}


SCRIPT: tuple[Step, ...] = (
    calls(
        ("plan", plan(0)),
        ("read", {"path": "test_prices.py"}),
        ("shell", {"command": "python3 -m unittest -q 2>&1"}),
        reasoning=THOUGHT,
        usage=USAGE,
    ),
    Step(text=FOUND, calls=(("plan", plan(2)), ("edit", REPAIR)), usage=USAGE),
    calls(("shell", {"command": "python3 -m unittest -q 2>&1"}), ("plan", plan(4)), usage=USAGE),
    calls(("ask_user", ASK), usage=USAGE),
    say(DONE, usage=USAGE),
    fail(400, "The context is longer than this model takes."),
)


def picture(width: int = 96, height: int = 64) -> bytes:
    """A picture that is not all one colour."""
    rows = b"".join(b"\0" + b"".join(bytes((90 + x, 120 + y, 200)) for x in range(width)) for y in range(height))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    made = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def furnish(sylph: Sylph) -> None:
    work = sylph.workspace
    (work / "docs").mkdir()
    for name, text in (
        ("prices.py", PRICES),
        ("test_prices.py", TEST),
        ("README.md", README),
        ("docs/hours.md", "Nine to six.\n"),
    ):
        (work / name).write_text(text)
    (work / "counter.png").write_bytes(picture())
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "Open the shop"]):
        named = ["-c", "user.name=Shop", "-c", "user.email=shop@example.com"]
        subprocess.run(["git", *named, *words], cwd=work, check=True, env=sylph.env({}))


async def ask(person: Person) -> str:
    """A session with a task in it, and a picture; its id."""
    served = person.served
    made = await served.session(title="Why does the test fail?")
    sent = {"name": "counter.png", "data": base64.b64encode(picture()).decode()}
    body = {"text": "Why does the test fail? Please repair it.", "attachments": [sent]}
    said = await served.client.post(f"/api/v1/sessions/{made['id']}/messages", json=body)
    assert said.status_code == 202, said.text
    await person.page.goto(f"/chat/{made['id']}")
    return made["id"]


async def others(served: Served) -> None:
    """Sessions to be listed."""
    for title in ("Rename the invoice template", "What changed since Friday?", "Weekly report"):
        await served.session(title=title)


async def approve(page: Page) -> None:
    """Allows what is asked; returns when that question is gone."""
    button = await page.get_by_role("button", name="Allow once").first.element_handle()
    assert button
    await button.click()
    await button.wait_for_element_state("hidden")


async def approve_until(page: Page, goal: Locator) -> int:
    """Allows whatever is asked until `goal` is there; how often."""
    allow, times = page.get_by_role("button", name="Allow once"), 0
    while True:
        await expect(allow.or_(goal).first).to_be_visible()
        if await goal.count():
            return times
        await approve(page)
        times += 1
