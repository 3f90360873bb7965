"""What can be done with a page in a browser. Imported only once there is one: Playwright is an extra."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from playwright.async_api import Error, Locator, Page, TimeoutError

from sylph.core.errors import ToolError
from sylph.core.tool import Context, Picture, Result
from sylph.net.proxy import MARK
from sylph.tools.web.chromium import Window
from sylph.tools.web.origin import clean, marked, one_line
from sylph.tools.web.step import Browse

PART = 15_000
LINE = 400
ACT_SECONDS = 10.0
SETTLE_SECONDS = 5.0


async def perform(args: Browse, window: Window, context: Context, seconds: float) -> Result:
    try:
        if args.action == "open":
            await _open(args, window, seconds)
            return await _seen(window)
        page = window.page
        if page is None:
            raise ToolError("No page is open.", kind="no_page", next=['Open one first: action="open" with its url.'])
        if args.action == "screenshot":
            return await _screenshot(page, window, context)
        await ACTS.get(args.action, _nothing)(args, page, window)
        return await _seen(window, args.offset)
    except TimeoutError:
        raise ToolError(
            f"{args.action} took too long: the page or the element is not ready.",
            kind="timeout",
            details=_details(window),
            next=['Look at the page again with action="read"; wait for what you expect with action="wait".'],
        ) from None
    except Error as error:
        raise _failed(args, window, error.message) from None


async def _open(args: Browse, window: Window, seconds: float) -> None:
    window.happened()
    page = window.page or await window.context.new_page()
    response = await page.goto(args.url, timeout=seconds * 1000, wait_until="domcontentloaded")
    if response is not None and MARK.lower() in response.headers:
        raise _failed(args, window, "The proxy does not let it through.")
    await _settle(page)


async def _seen(window: Window, offset: int = 0) -> Result:
    """The page as it is now: where, its tree, and what happened beside."""
    page = window.page
    if page is None:
        return Result(text=marked("the page is closed", "\n".join(_notes(window)) or "(no page)"))
    tree = clean(await page.aria_snapshot(mode="ai", timeout=ACT_SECONDS * 1000))
    lines = (line if len(line) <= LINE else line[:LINE] + "…" for line in tree.splitlines())
    text = "\n".join(lines)
    part = text[offset : offset + PART]
    more = ""
    if offset + PART < len(text):
        part = part[: part.rfind("\n") + 1] or part
        more = f' · go on with action="read" offset={offset + len(part)}'
    others = f" · {len(window.context.pages)} tabs" if len(window.context.pages) > 1 else ""
    title = f"Title: {one_line(await page.title(), 200)}"
    words = [title, part.rstrip("\n") or "(an empty page)", *_notes(window)]
    return Result(text=marked(f"{page.url}{others}{more}", "\n".join(words)))


async def _screenshot(page: Page, window: Window, context: Context) -> Result:
    data = await page.screenshot(type="png", timeout=ACT_SECONDS * 1000)
    path = context.private / "screenshots" / f"{context.call}.png"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(data)
    told = f"A picture of {one_line(page.url, 300)} ({len(data):,} bytes) is in {path}."
    notes = _notes(window)
    text = "\n".join([told, marked("beside", "\n".join(notes))] if notes else [told])
    return Result(text=text, images=(Picture(data=data, media="image/png", name=page.url[:200]),))


async def _click(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    await (await _element(args, page)).click(timeout=ACT_SECONDS * 1000)
    await _settle(page)


async def _type(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    element = await _element(args, page)
    await element.fill(args.text, timeout=ACT_SECONDS * 1000)
    if args.submit:
        await element.press("Enter", timeout=ACT_SECONDS * 1000)
    await _settle(page)


async def _select(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    await (await _element(args, page)).select_option(args.text, timeout=ACT_SECONDS * 1000)
    await _settle(page)


async def _press(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    if args.ref:
        await (await _element(args, page)).press(args.text, timeout=ACT_SECONDS * 1000)
    else:
        await page.keyboard.press(args.text)
    await _settle(page)


async def _wait(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    limit = (args.seconds or ACT_SECONDS) * 1000
    if args.ref:
        await (await _element(args, page)).wait_for(state="visible", timeout=limit)
    elif args.text:
        await page.get_by_text(args.text).first.wait_for(state="visible", timeout=limit)
    else:
        await page.wait_for_timeout(args.seconds * 1000)


async def _scroll(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    if args.ref:
        await (await _element(args, page)).scroll_into_view_if_needed(timeout=ACT_SECONDS * 1000)
    else:
        await page.mouse.wheel(0, -700 if args.text.strip().lower() == "up" else 700)
        await page.wait_for_timeout(200)


async def _back(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    if await page.go_back(wait_until="domcontentloaded", timeout=ACT_SECONDS * 1000) is None:
        window.events.append("there is no page to go back to")


async def _tabs(args: Browse, page: Page, window: Window) -> None:  # noqa: ARG001 - as all acts
    pages = window.context.pages
    if args.tab > len(pages):
        raise ToolError(f"There is no tab {args.tab}; there are {len(pages)}.", kind="no_tab")
    if args.tab:
        window.page = pages[args.tab - 1]
        await window.page.bring_to_front()
    for number, each in enumerate(pages, 1):
        mark = " (this one)" if each is window.page else ""
        window.events.append(f"tab {number}{mark}: {one_line(each.url, 200)}")


async def _nothing(args: Browse, page: Page, window: Window) -> None:
    """Only a look."""


ACTS: dict[str, Callable[[Browse, Page, Window], Awaitable[None]]] = {
    "click": _click,
    "type": _type,
    "select": _select,
    "press": _press,
    "wait": _wait,
    "scroll": _scroll,
    "back": _back,
    "tabs": _tabs,
}


async def _element(args: Browse, page: Page) -> Locator:
    ref = args.ref.strip().strip("[]").removeprefix("ref=")
    if not ref.isalnum():
        raise ToolError(
            f"{args.action} needs the ref of an element.",
            kind="bad_ref",
            next=["Name it as [ref=e12] does in the page that was read last: ref=e12."],
        )
    found = page.locator(f"aria-ref={ref}")
    if await found.count() == 0:
        raise ToolError(
            f"There is no element {ref} on the page now.",
            kind="bad_ref",
            next=['Look at the page again with action="read": refs change with the page.'],
        )
    return found


async def _settle(page: Page) -> None:
    """Gives a page a moment to load what an action set off."""
    with suppress(Error):  # A page that loads for ever, or was closed, is shown as it is.
        await page.wait_for_timeout(150)
        await page.wait_for_load_state("load", timeout=SETTLE_SECONDS * 1000)


def _notes(window: Window) -> list[str]:
    return [f"[{one_line(said, 300)}]" for said in window.happened()]


def _details(window: Window) -> dict[str, str]:
    notes = "; ".join(one_line(said, 300) for said in window.happened())
    return {"also": notes} if notes else {}


def _failed(args: Browse, window: Window, said: str) -> ToolError:
    details = _details(window)
    first = one_line(said.partition("\n")[0], 300)
    if "not reached:" in details.get("also", ""):
        return ToolError(
            f"{args.action} failed: {details['also'].removeprefix('not reached: ')}",
            kind="private_address" if "public address" in details["also"] else "web_network",
            next=["A private address must be permitted by the user with web.allow."],
        )
    return ToolError(
        f"{args.action} failed: {first}",
        kind="browser_failed",
        details=details,
        next=['Look at the page with action="read", or open it again.'],
    )
