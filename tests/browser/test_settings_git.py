"""The git remote of a workspace, set up in the page and tried on a real SSH server."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser.person import Person
from tests.flows.program import Sylph
from tests.http.test_git_remote import remote
from tests.ssh_server import SSHServer

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ssh", "ssh-keygen", "ssh-agent", "ssh-keyscan"))), reason="OpenSSH is not installed"
)


@pytest_asyncio.fixture(loop_scope="session")
async def ssh(sylph: Sylph, tmp_path: Path) -> AsyncGenerator[SSHServer, None]:
    async with remote(sylph, tmp_path / "remote") as server:
        yield server


async def test_a_remote_is_set_up_step_by_step(person: Person, ssh: SSHServer) -> None:
    page = person.page
    await page.goto("/settings/git")
    await page.wait_for_url("**/settings/git/*")
    await page.get_by_label("Address").fill("https://ann:secret@git.example/x.git")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert").first).to_be_visible()
    await page.get_by_label("Address").fill(ssh.url("project.git"))
    await page.get_by_label("Branch").fill("main")
    await page.get_by_role("button", name="Save", exact=True).click()
    await person.see("Saved.")
    await page.get_by_role("button", name="Make a key").click()
    await person.see("Public half, for the other side to let in")
    test = page.get_by_role("button", name="Test", exact=True)
    await test.click()
    await person.see("The host is not known yet.")
    await page.get_by_role("button", name="Trust this key").first.click()
    await expect(page.get_by_label("Known hosts")).to_have_value(ssh.line)
    await test.click()
    await person.see("The other side does not let this key in.")
    ssh.allow(await page.get_by_role("definition").locator("code", has_text="ssh-ed25519").inner_text())
    await test.click()
    await person.see("It works.")
    await page.get_by_role("button", name="Forget these settings").click()
    await page.get_by_role("group", name="Forget these settings").get_by_role("button").first.click()
    await person.see("Forgotten.")
    # The address names a workspace here, and only here.
    await page.get_by_role("link", name="About").click()
    await expect(page.get_by_role("heading", name="About")).to_be_visible()


async def test_one_leaves_the_git_settings_for_every_other_page(person: Person) -> None:
    page = person.page
    await page.goto("/settings/services")
    await page.get_by_role("link", name="Git remote").click()
    await page.wait_for_url("**/settings/git/*")
    await expect(page.get_by_label("Address")).to_be_visible()
    for name, place in (("Tools", "tools"), ("Identity", "identity"), ("Configuration", "config")):
        await page.get_by_role("link", name=name, exact=True).click()
        await page.wait_for_url(f"**/settings/{place}*")
        await expect(page.get_by_label("Address")).to_have_count(0)
        await page.go_back()
        await page.wait_for_url("**/settings/git/*")
    await page.go_back()
    await page.wait_for_url("**/settings/services")
