"""Keys and devices: tokens, links, and what somebody sees who may only read."""

from playwright.async_api import Browser, expect
from tests.browser.person import Person


async def test_a_token_is_made_used_and_revoked(person: Person) -> None:
    page, bare = person.page, person.served.bare
    await page.goto("/settings/access")
    form = page.locator("form").filter(has=page.get_by_label("Ends after"))
    await form.get_by_label("Name").fill("laptop")
    await form.get_by_role("checkbox", name="hook").check()
    await person.see("A token for hooks is for hooks only.")
    await form.get_by_role("checkbox", name="hook").uncheck()
    await form.get_by_role("checkbox", name="chat").check()
    await form.get_by_label("Ends after").select_option("a week")
    await form.get_by_role("button", name="Make", exact=True).click()
    await person.see("This is shown only now.")
    token = await page.locator("code.token").inner_text()
    bearer = {"Authorization": f"Bearer {token}"}
    me = (await bare.get("/api/v1/login", headers=bearer)).json()
    assert (me["name"], sorted(me["scopes"])) == ("laptop", ["chat", "read"])
    assert (await bare.get("/api/v1/keys", headers=bearer)).status_code == 403
    await page.get_by_role("button", name="I have it").click()
    assert token not in await page.content()
    row = page.get_by_role("row").filter(has_text="laptop")
    await row.get_by_role("button", name="Revoke laptop").click()
    await row.get_by_role("button", name="Revoke", exact=True).click()
    await expect(row).to_be_hidden()
    assert (await bare.get("/api/v1/login", headers=bearer)).status_code == 401


async def test_a_link_brings_a_phone_in_which_sees_only_what_it_may(person: Person, browser: Browser) -> None:
    page = person.page
    await page.goto("/settings/access")
    form = page.locator("form").filter(has=page.get_by_role("button", name="Make a link"))
    await form.get_by_role("checkbox", name="chat").uncheck()
    await form.get_by_role("checkbox", name="approve").uncheck()
    await form.get_by_role("button", name="Make a link").click()
    await expect(page.get_by_role("img", name="QR code of the link")).to_be_visible()
    url = await page.locator("code.address").inner_text()
    phone = await browser.new_context(base_url=person.served.url, viewport={"width": 390, "height": 800})
    theirs = await phone.new_page()
    await theirs.goto(url)
    await theirs.wait_for_url(lambda url: "/login" not in url)
    await theirs.goto("/settings/config/general")
    await expect(theirs.get_by_text("You may look at this, but not change it")).to_be_visible()
    await expect(theirs.get_by_label("Mode", exact=True)).to_be_disabled()
    assert await theirs.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await theirs.goto("/settings/raw")
    await expect(theirs.get_by_text("This needs the scope `admin`")).to_be_visible()
    await theirs.goto("/settings/access")
    await theirs.get_by_role("button", name="Log out").first.click()
    await expect(theirs.get_by_role("heading", name="Log in to Sylph")).to_be_visible()
    await phone.close()
