"""What can be done with a page in a browser. Imported only once there is one: Playwright is an extra."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from playwright.async_api import Error, Locator, Page, TimeoutError

from sylph.core.errors import ToolError
from sylph.core.tool import ImageData, ToolContext, ToolResult
from sylph.net.filtering_proxy import STATUS_HEADER
from sylph.tools.web.browser.args import BrowseArgs
from sylph.tools.web.browser.chromium import BrowserWindow
from sylph.tools.web.untrusted_text import mark_untrusted, one_line, strip_invisible

PART = 15_000
LINE = 400
ACT_SECONDS = 10.0
SETTLE_SECONDS = 5.0


async def perform_action(args: BrowseArgs, window: BrowserWindow, context: ToolContext, seconds: float) -> ToolResult:
    try:
        if args.action == "open":
            await _open_page(args, window, seconds)
            return await _page_result(window)
        page = window.page
        if page is None:
            raise ToolError("No page is open.", kind="no_page", next=['Open one first: action="open" with its url.'])
        if args.action == "screenshot":
            return await _take_screenshot(page, window, context)
        await ACTIONS.get(args.action, _do_nothing)(args, page, window)
        return await _page_result(window, args.offset)
    except TimeoutError:
        raise ToolError(
            f"{args.action} took too long: the page or the element is not ready.",
            kind="timeout",
            details=_event_details(window),
            next=['Look at the page again with action="read"; wait for what you expect with action="wait".'],
        ) from None
    except Error as error:
        raise _action_error(args, window, error.message) from None


async def _open_page(args: BrowseArgs, window: BrowserWindow, seconds: float) -> None:
    window.take_events()
    page = window.page or await window.context.new_page()
    response = await page.goto(args.url, timeout=seconds * 1000, wait_until="domcontentloaded")
    if response is not None and STATUS_HEADER.lower() in response.headers:
        raise _action_error(args, window, "The proxy does not let it through.")
    await _wait_settled(page)


async def _page_result(window: BrowserWindow, offset: int = 0) -> ToolResult:
    """The page as it is now: where, its tree, and what happened beside."""
    page = window.page
    if page is None:
        return ToolResult(text=mark_untrusted("the page is closed", "\n".join(_event_notes(window)) or "(no page)"))
    tree = strip_invisible(await page.aria_snapshot(mode="ai", timeout=ACT_SECONDS * 1000))
    lines = (line if len(line) <= LINE else line[:LINE] + "…" for line in tree.splitlines())
    text = "\n".join(lines)
    part = text[offset : offset + PART]
    more = ""
    if offset + PART < len(text):
        part = part[: part.rfind("\n") + 1] or part
        more = f' · go on with action="read" offset={offset + len(part)}'
    others = f" · {len(window.context.pages)} tabs" if len(window.context.pages) > 1 else ""
    title = f"Title: {one_line(await page.title(), 200)}"
    words = [title, part.rstrip("\n") or "(an empty page)", *_event_notes(window)]
    return ToolResult(text=mark_untrusted(f"{page.url}{others}{more}", "\n".join(words)))


async def _take_screenshot(page: Page, window: BrowserWindow, context: ToolContext) -> ToolResult:
    data = await page.screenshot(type="png", timeout=ACT_SECONDS * 1000)
    path = context.private / "screenshots" / f"{context.call}.png"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(data)
    told = f"A picture of {one_line(page.url, 300)} ({len(data):,} bytes) is in {path}."
    notes = _event_notes(window)
    text = "\n".join([told, mark_untrusted("beside", "\n".join(notes))] if notes else [told])
    return ToolResult(text=text, images=(ImageData(data=data, media="image/png", name=page.url[:200]),))


async def _click_element(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    await (await _find_element(args, page)).click(timeout=ACT_SECONDS * 1000)
    await _wait_settled(page)


async def _type_text(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    element = await _find_element(args, page)
    await element.fill(args.text, timeout=ACT_SECONDS * 1000)
    if args.submit:
        await element.press("Enter", timeout=ACT_SECONDS * 1000)
    await _wait_settled(page)


async def _select_option(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    await (await _find_element(args, page)).select_option(args.text, timeout=ACT_SECONDS * 1000)
    await _wait_settled(page)


async def _press_key(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    if args.ref:
        await (await _find_element(args, page)).press(args.text, timeout=ACT_SECONDS * 1000)
    else:
        await page.keyboard.press(args.text)
    await _wait_settled(page)


async def _wait_for(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    limit = (args.seconds or ACT_SECONDS) * 1000
    if args.ref:
        await (await _find_element(args, page)).wait_for(state="visible", timeout=limit)
    elif args.text:
        await page.get_by_text(args.text).first.wait_for(state="visible", timeout=limit)
    else:
        await page.wait_for_timeout(args.seconds * 1000)


async def _scroll_page(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    if args.ref:
        await (await _find_element(args, page)).scroll_into_view_if_needed(timeout=ACT_SECONDS * 1000)
    else:
        await page.mouse.wheel(0, -700 if args.text.strip().lower() == "up" else 700)
        await page.wait_for_timeout(200)


async def _go_back(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    if await page.go_back(wait_until="domcontentloaded", timeout=ACT_SECONDS * 1000) is None:
        window.events.append("there is no page to go back to")


async def _switch_tab(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:  # noqa: ARG001 - as all acts
    pages = window.context.pages
    if args.tab > len(pages):
        raise ToolError(f"There is no tab {args.tab}; there are {len(pages)}.", kind="no_tab")
    if args.tab:
        window.page = pages[args.tab - 1]
        await window.page.bring_to_front()
    for number, each in enumerate(pages, 1):
        mark = " (this one)" if each is window.page else ""
        window.events.append(f"tab {number}{mark}: {one_line(each.url, 200)}")


async def _do_nothing(args: BrowseArgs, page: Page, window: BrowserWindow) -> None:
    """Only a look."""


ACTIONS: dict[str, Callable[[BrowseArgs, Page, BrowserWindow], Awaitable[None]]] = {
    "click": _click_element,
    "type": _type_text,
    "select": _select_option,
    "press": _press_key,
    "wait": _wait_for,
    "scroll": _scroll_page,
    "back": _go_back,
    "tabs": _switch_tab,
}


async def _find_element(args: BrowseArgs, page: Page) -> Locator:
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


async def _wait_settled(page: Page) -> None:
    """Gives a page a moment to load what an action set off."""
    with suppress(Error):  # A page that loads for ever, or was closed, is shown as it is.
        await page.wait_for_timeout(150)
        await page.wait_for_load_state("load", timeout=SETTLE_SECONDS * 1000)


def _event_notes(window: BrowserWindow) -> list[str]:
    return [f"[{one_line(said, 300)}]" for said in window.take_events()]


def _event_details(window: BrowserWindow) -> dict[str, str]:
    notes = "; ".join(one_line(said, 300) for said in window.take_events())
    return {"also": notes} if notes else {}


def _action_error(args: BrowseArgs, window: BrowserWindow, said: str) -> ToolError:
    details = _event_details(window)
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
