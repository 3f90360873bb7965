"""The git remote of a workspace, set over HTTP, tried on a real SSH server, and used by the agent in its sandbox."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.flows.program import Model, Sylph
from tests.flows.told import results
from tests.http.served import Served, serving
from tests.http.workspace import Workspace, problem
from tests.model_server import call, say
from tests.ssh_server import SSHServer

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("ssh", "ssh-keygen", "ssh-agent", "ssh-keyscan"))), reason="OpenSSH is not installed"
)
MODEL = "openai/scripted"
WHO = ("-c", "user.name=T", "-c", "user.email=t@example.com")


def sh(place: Path, *words: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *WHO, *words], cwd=place, env=env, check=True, capture_output=True, text=True)
    return done.stdout


@asynccontextmanager
async def remote(sylph: Sylph, folder: Path) -> AsyncGenerator[SSHServer, None]:
    """A workspace with git, and a project on an SSH server."""
    sh(sylph.workspace, "init", "-q", "--bare", "-b", "main", str(folder / "project.git"))
    sh(sylph.workspace, "init", "-q", "-b", "main")
    async with SSHServer(folder) as server:
        yield server


@pytest.fixture
async def ssh(sylph: Sylph, tmp_path: Path) -> AsyncGenerator[SSHServer, None]:
    async with remote(sylph, tmp_path / "remote") as server:
        yield server


async def ask(workspace: Workspace, method: str, what: str = "", **given: Any) -> tuple[int, dict[str, Any]]:
    answer = await workspace.served.client.request(method, f"{workspace.url}/git{what}", **given)
    return answer.status_code, answer.json() if answer.content else {}


async def trial(workspace: Workspace, **body: object) -> dict[str, Any]:
    status, told = await ask(workspace, "POST", "/test", json=body)
    assert status == 200, told
    return told


async def test_a_remote_is_set_tried_and_its_key_never_comes_out(
    served: Served, ssh: SSHServer, tmp_path: Path
) -> None:
    workspace = await Workspace.of(served)
    assert (await ask(workspace, "GET"))[1]["stored"] is False
    url = ssh.url("project.git")
    status, told = await ask(workspace, "PUT", json={"url": url, "branch": "main", "name": "Ann", "email": "a@x.org"})
    assert (status, told["url"], told["key"]) == (200, url, None)
    assert sh(workspace.root, "remote", "get-url", "origin") == f"{url}\n"
    status, made = await ask(workspace, "POST", "/key", json={})
    assert status == 201
    assert str(made["fingerprint"]).startswith("SHA256:")
    assert (await ask(workspace, "POST", "/key", json={}))[0] == 409
    unknown = await trial(workspace)
    assert unknown["outcome"] == "host_key_unknown"
    shown = unknown["host_keys"]
    assert shown[0]["line"] == ssh.line
    assert shown[0]["fingerprint"].startswith("SHA256:")
    _, told = await ask(workspace, "GET")
    body = {name: told[name] for name in ("url", "branch", "name", "email")} | {"known_hosts": [ssh.line]}
    await ask(workspace, "PUT", json=body)
    assert (await trial(workspace))["outcome"] == "auth_failed"
    ssh.allow(str(made["public"]))
    assert (await trial(workspace))["outcome"] == "ok"
    assert (await trial(workspace, push=True))["outcome"] == "no_commit"
    (workspace.root / "a.txt").write_text("a")
    sh(workspace.root, "add", "a.txt")
    sh(workspace.root, "commit", "-q", "-m", "one")
    assert (await trial(workspace, push=True))["outcome"] == "ok"
    assert sh(tmp_path / "remote" / "project.git", "branch", "--list") == ""
    await ask(workspace, "PUT", json={**body, "url": ssh.url("none.git")})
    assert (await trial(workspace))["outcome"] == "not_found"
    async with SSHServer(tmp_path) as other:
        line = f"[127.0.0.1]:{other.port} {ssh.line.partition(' ')[2]}"
        await ask(workspace, "PUT", json={**body, "url": other.url("x"), "known_hosts": [line]})
        assert (await trial(workspace))["outcome"] == "host_key_changed"
    kept = served.sylph.home / "sylph" / "remotes"
    keys = list(kept.glob("*.key"))
    assert [each.stat().st_mode & 0o777 for each in (kept, *keys)] == [0o700, 0o600]
    private = keys[0].read_text()
    everything = [await served.client.get(f"{workspace.url}{each}") for each in ("/git", "")]
    assert not any(line in answer.text for line in private.splitlines() for answer in everything)
    status, _ = await ask(workspace, "DELETE")
    assert (status, list(kept.iterdir())) == (204, [])
    assert (await ask(workspace, "DELETE"))[0] == 404


async def test_the_agent_pushes_with_a_key_that_it_cannot_read(
    sylph: Sylph, model: Model, ssh: SSHServer, tmp_path: Path
) -> None:
    (sylph.workspace / "a.txt").write_text("a")
    (sylph.workspace / "look.sh").write_text(
        "cat $HOME/sylph/remotes/*; ls /run/sylph-lent /tmp/sylph-ssh-*; echo $GIT_SSH_COMMAND; ssh-add -l; true\n"
    )
    server = await model(
        [
            call("git", action="add", all=True),
            call("git", action="commit", message="The first one"),
            call("git", action="push"),
            call("shell", command="sh look.sh"),
            call("git", action="fetch"),
            say("Pushed."),
        ]
    )
    async with serving(sylph) as served:
        workspace = await Workspace.of(served)
        _, made = await ask(workspace, "POST", "/key", json={})
        ssh.allow(str(made["public"]))
        body = {"url": ssh.url("project.git"), "branch": "main", "name": "Ann", "email": "ann@x.org"}
        await ask(workspace, "PUT", json={**body, "known_hosts": [ssh.line]})
        private = next((sylph.home / "sylph" / "remotes").glob("*.key")).read_text().splitlines()[1]
        session = (await served.session(model=MODEL, mode="trust"))["id"]
        await served.say(session, "push it")
        await served.until(session)
    told = results(server)
    bare = tmp_path / "remote" / "project.git"
    assert sh(bare, "log", "--format=%s %an %ae", "main") == "The first one Ann ann@x.org\n", told
    assert private not in str(server.requests)
    assert "IdentityAgent" not in told[3]
    assert "sylph-ssh-" not in told[3].replace("/tmp/sylph-ssh-*", "")
    assert "Error" not in told[4], told[4]
    assert [command.split()[0] for command in ssh.commands] == ["git-receive-pack", "git-upload-pack"]


async def test_what_is_dangerous_or_wrong_is_refused(served: Served, ssh: SSHServer, tmp_path: Path) -> None:
    workspace = await Workspace.of(served)
    for url, kind in (
        ("ext::sh -c id", "bad_url"),
        ("file:///etc", "bad_url"),
        ("/etc", "bad_url"),
        ("-oProxyCommand=id", "bad_url"),
        ("ssh://-oProxyCommand=id/x", "bad_url"),
        ("git://host/x", "bad_url"),
        ("http://host/x", "bad_url"),
        ("https://ann:secret@host/x", "secret_in_url"),
        ("https://ghp_token@host/x", "secret_in_url"),
        ("ssh://git:secret@host/x", "secret_in_url"),
    ):
        answer = await served.client.put(f"{workspace.url}/git", json={"url": url})
        assert problem(answer) == (400, kind), url
        assert "secret@" not in answer.text
        assert "ghp_token" not in answer.text
    for body, kind in (
        ({"branch": "--force"}, "bad_ref"),
        ({"remote": "-x"}, "bad_remote"),
        ({"name": "a\nb"}, "bad_identity"),
        ({"known_hosts": ["host ssh-ed25519"]}, "bad_known_host"),
        ({"known_hosts": ["a ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB\nb ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB"]}, "bad_known_host"),
        ({"key": "nonsense"}, "bad_key"),
        ({"key": "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----"}, "bad_key"),
    ):
        assert problem(await served.client.put(f"{workspace.url}/git", json=body)) == (400, kind), body
    file = tmp_path / "locked"
    made = await asyncio.create_subprocess_exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "phrase", "-f", str(file))
    await made.wait()
    locked = await served.client.put(f"{workspace.url}/git", json={"key": file.read_text()})
    assert problem(locked) == (400, "locked_key")
    tag = (await served.client.get(f"{workspace.url}/git")).headers["etag"]
    await served.client.put(f"{workspace.url}/git", json={"name": "Ann"}, headers={"If-Match": tag})
    late = await served.client.put(f"{workspace.url}/git", json={"name": "Bob"}, headers={"If-Match": tag})
    assert problem(late) == (412, "changed")
    other = tmp_path / "plain"
    other.mkdir()
    added = (await served.client.post("/api/v1/workspaces", json={"path": str(other)})).json()["id"]
    bare = await served.client.put(f"/api/v1/workspaces/{added}/git", json={"url": "git@host:x"})
    assert problem(bare) == (409, "not_a_repository")
    nothing = await served.client.post(f"/api/v1/workspaces/{added}/git/test", json={})
    assert problem(nothing) == (409, "wrong_state")


async def test_the_command_line_sets_and_tries_the_same(sylph: Sylph, ssh: SSHServer, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"# a comment\n{ssh.line}\n")
    done = await sylph.run(
        "remote", "set", "--url", ssh.url("project.git"), "--branch", "main", "--known-hosts", str(hosts)
    )
    assert done.code == 0, done.err
    public = (await sylph.run("remote", "key")).out
    assert public.startswith("ssh-ed25519 ")
    assert (await sylph.run("remote", "test")).code == 1
    ssh.allow(public)
    tried = await sylph.run("remote", "test", "--json")
    assert (tried.code, tried.json["test"]["outcome"]) == (0, "ok"), tried.out
    shown = (await sylph.run("remote", "show", "--json")).json["remote"]
    assert (shown["url"], shown["public_key"]) == (ssh.url("project.git"), public.strip())
    assert (await sylph.run("remote", "remove")).code == 0
    assert (await sylph.run("remote", "remove")).code != 0
