"""Which paths are guarded, and which ordinary ones are not."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sylph.core.permission.path_policy import PathPolicy, real_path
from sylph.core.permission.protected_path import build_read_guard, find_protection, suspect_name_pattern

PLACES = PathPolicy(
    home=Path("/home/ann"),
    sylph=(Path("/home/ann/.sylph"), Path("/data/sylph"), Path("/etc/sylph.toml")),
    source=(Path("/opt/sylph/src/sylph"),),
)
SECRETS = """
    /w/.env /w/.env.local /w/.env.production /w/sub/.ENV /w/.envrc /w/prod.env /w/server.pem /w/tls/private.key
    /w/a.kdbx /w/a.p12 /home/ann/.ssh/id_rsa /home/ann/.ssh/config /home/ann/.ssh /home/ann/.ssh/known_hosts
    /w/id_ed25519 /w/deploy_rsa /home/ann/.SSH/id_rsa /home/ann/.aws/credentials /home/ann/.kube/config
    /home/ann/.docker/config.json /home/ann/.config/gcloud/x.db /home/ann/.netrc /home/ann/.npmrc
    /home/ann/.pypirc /home/ann/.gnupg/trustdb.gpg /home/ann/.mozilla/firefox/x/logins.json /w/secrets.yaml
    /home/ann/.local/share/keyrings/login.keyring /etc/shadow /etc/sudoers.d/x /proc/1/environ /proc/self/environ
    /home/ann/.bash_history /home/ann/.git-credentials /w/terraform.tfstate /w/credentials.json /home/ann/.pgpass
    /home/ann/.claude/.credentials.json /home/ann/.codex/auth.json /home/ann/.gemini/oauth_creds.json
    /home/ann/.qwen/oauth_creds.json /home/ann/.config/github-copilot/apps.json /home/ann/.config/gh/hosts.yml
    /run/secrets/db /home/ann/.config/google-chrome/Default/Cookies /home/ann/Library/Keychains/login.keychain-db
"""
ORDINARY = """
    /w/.env.example /w/.env.sample /w/.env.template /w/.env.dist /w/package.json /w/src/env.py /w/environment.yml
    /w/keyboard.py /w/key.py /home/ann/.ssh/id_rsa.pub /w/README.md /w/.gitignore /w/.github/workflows/x.yml
    /w/.git/HEAD /w/ca-bundle.pem /etc/ssl/certs/ca.pem /w/secrets.py /w/test_credentials.py /w/public.key
    /etc/hosts /etc/passwd /w/docs/env.md /usr/lib/python3/dist-packages/certifi/cacert.pem /w/monkey
    /w/.venv/bin/python /w/.envoy/x /w/.pre-commit-config.yaml
"""


@pytest.mark.parametrize("path", SECRETS.split())
def test_secrets_are_known_by_their_place_and_name(path: str) -> None:
    guard = find_protection(path, writing=False, places=PLACES)
    assert guard and (guard.kind, guard.effect, guard.risk) == ("secret", None, "dangerous")
    assert find_protection(path, writing=True, places=PLACES)


@pytest.mark.parametrize("path", [*SECRETS.split(), *ORDINARY.split(), "/data/sylph/events.db", "/etc/sylph.toml"])
def test_many_paths_below_a_folder_are_told_as_each_alone_is(path: str) -> None:
    guard = find_protection(path, writing=False, places=PLACES)
    for top in Path(path).parents:
        name = str(Path(path).relative_to(top))
        assert build_read_guard(top, PLACES)(name) == (guard is not None)
        assert not guard or re.search(suspect_name_pattern(top, PLACES), name.upper(), re.IGNORECASE)


@pytest.mark.parametrize("path", ORDINARY.split())
def test_ordinary_files_may_be_read(path: str) -> None:
    assert find_protection(path, writing=False, places=PLACES) is None


@pytest.mark.parametrize(
    ("path", "kind", "effect", "risk"),
    [
        ("/w/.git/config", "git", None, "dangerous"),
        ("/w/.git", "git", None, "dangerous"),
        ("/w/vendor/.GIT/hooks/pre-commit", "git", None, "dangerous"),
        ("/home/ann/.sylph/config.toml", "sylph", "self", "dangerous"),
        ("/home/ann/.sylph", "sylph", "self", "dangerous"),
        ("/DATA/sylph/events.db", "sylph", "self", "dangerous"),
        ("/etc/sylph.toml", "sylph", "self", "dangerous"),
        ("/w/.sylph/rules.toml", "sylph", "self", "dangerous"),
        ("/opt/sylph/src/sylph/engine/policy.py", "source", "self", "dangerous"),
        ("/home/ann/.bashrc", "startup", None, "dangerous"),
        ("/home/ann/.config/autostart/x.desktop", "startup", None, "dangerous"),
        ("/w/.env", "secret", None, "caution"),
        ("/home/ann/.ssh/authorized_keys", "secret", None, "dangerous"),
    ],
)
def test_what_may_not_be_changed(path: str, kind: str, effect: str | None, risk: str) -> None:
    guard = find_protection(path, writing=True, places=PLACES)
    assert guard and (guard.kind, guard.effect, guard.risk) == (kind, effect, risk)
    assert guard.why


@pytest.mark.parametrize(
    "path", ["/w/a.py", "/w/.gitignore", "/w/.github/x", "/w/.bashrc", "/home/ann/w/x", "/opt/sylph/docs/x"]
)
def test_ordinary_files_may_be_changed(path: str) -> None:
    assert find_protection(path, writing=True, places=PLACES) is None


def test_the_log_and_the_settings_are_not_read_by_the_way() -> None:
    guard = find_protection("/home/ann/.sylph/config.toml", writing=False, places=PLACES)
    assert guard and (guard.kind, guard.effect, guard.risk) == ("sylph", None, "dangerous")
    assert find_protection("/opt/sylph/src/sylph/app.py", writing=False, places=PLACES) is None


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40), st.booleans())
def test_any_name_can_be_asked_about_and_capitals_hide_nothing(name: str, writing: bool) -> None:
    here = find_protection(f"/w/{name}", writing=writing, places=PLACES)
    assert find_protection(f"/W/{name.casefold()}", writing=writing, places=PLACES) == here


def test_links_are_followed_also_to_what_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "git").symlink_to(tmp_path / "repo" / ".git")
    guard = find_protection(real_path(tmp_path / "git" / "hooks" / "new"), writing=True, places=PLACES)
    assert guard and guard.kind == "git"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert real_path(tmp_path / "loop" / "x").is_absolute()
