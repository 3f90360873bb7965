"""What the doctor looks at, one function for each part of the body."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from sylph import __version__
from sylph.app import NO_MODEL_HINTS, App
from sylph.compose.credentials import open_credential_store
from sylph.compose.engine import build_rule_store, log_path
from sylph.config import Config
from sylph.config.rules_file import PROJECT_RULES_FILE
from sylph.core.errors import StoreError, UserError
from sylph.core.text.formatting import count_noun
from sylph.engine.budget.audit import audit_ledger
from sylph.interfaces.actions.file_versions import LEGACY_FOLDER, VERSIONS_FOLDER
from sylph.interfaces.actions.identity_files import VERSIONED_FILES
from sylph.interfaces.reports.service_probe import ProbedService, probe_services
from sylph.interfaces.text.render import format_size
from sylph.interfaces.text.sandbox_notice import sandbox_layer
from sylph.providers.credentials.entry import CredentialEntry
from sylph.tools.search.ripgrep import find_ripgrep

CheckGrade = Literal["ok", "warn", "fail"]
PROBE_SECONDS = 2.0
MIN_FREE_BYTES = 1 << 30
OTHERS_MODE = 0o077


class DoctorFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at."""

    what: str
    grade: CheckGrade
    said: str
    next: tuple[str, ...] = ()


def check_machine(place: Config) -> Iterator[DoctorFinding]:
    """What does not depend on the configuration."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding("sylph", "ok", f"{__version__}, Python {version}, SQLite {sqlite3.sqlite_version}")
    yield check_folder("home", place.home)
    yield check_folder("data", place.data)
    yield from check_home_layout(place)
    yield check_disk_space(place.data)
    yield check_credentials(place)
    yield check_ripgrep(place)
    yield check_shell()
    kind = place.terminal.kind or "none"
    yield DoctorFinding(
        "terminal", "ok", f"{kind}, {sys.stdout.encoding}, colours {'on' if place.terminal.colour else 'off'}"
    )


def check_folder(what: str, path: Path) -> DoctorFinding:
    if not path.exists():
        return DoctorFinding(what, "ok", f"{path} (made when it is needed)")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return DoctorFinding(what, "fail", f"{path} cannot be written", (f"chown or chmod {path}, or set SYLPH_HOME",))
    if path.stat().st_mode & OTHERS_MODE:
        return DoctorFinding(what, "warn", f"{path} can be looked into by others", (f"chmod 700 {path}",))
    return DoctorFinding(what, "ok", str(path))


def check_home_layout(place: Config) -> Iterator[DoctorFinding]:
    """What is no file where the chat wants one, and no folder where earlier versions of files are to lie."""
    typed, old = place.home / LEGACY_FOLDER, place.home / VERSIONS_FOLDER
    # What an older Sylph has left there is taken along by itself.
    if typed.is_dir() and any(each.name not in VERSIONED_FILES for each in typed.iterdir()):
        yield DoctorFinding("home", "fail", f"{typed} is a folder: the chat cannot begin", (f"mv {typed} {typed}.old",))
    if old.exists() and not old.is_dir():
        said = f"{old} is no folder: settings and identity cannot be changed by a server"
        yield DoctorFinding("home", "fail", said, (f"mv {old} {old}.old",))


def check_credentials(place: Config) -> DoctorFinding:
    """What is stored of keys and logins, looked at without opening any of it."""
    store = open_credential_store(place, str)
    entries = list(store.list_entries())
    for damaged in (each for each in entries if isinstance(each, StoreError)):
        return DoctorFinding("keys", "fail", str(damaged), damaged.trouble.next)
    over = [each.provider for each in entries if isinstance(each, CredentialEntry) and each.ended]
    if over:
        said = f"the login to {', '.join(over)} is over"
        return DoctorFinding("keys", "warn", said, tuple(f"sylph connect {name}" for name in over))
    if bare := store.list_unsealed():
        said = f"a passphrase is set, and yet what is stored for {', '.join(bare)} is not sealed"
        return DoctorFinding("keys", "warn", said, ("sylph connect passphrase",))
    if not entries:
        return DoctorFinding("keys", "ok", "none stored: sylph connect  saves a key or logs in")
    return DoctorFinding(
        "keys", "ok", f"{count_noun(len(entries), 'credential')} stored; a new one goes to {store.describe_location()}"
    )


def check_disk_space(path: Path) -> DoctorFinding:
    there = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        return DoctorFinding(
            "disk", "warn", f"only {format_size(free)} free at {there}", ("make room: a full disk stops every turn",)
        )
    return DoctorFinding("disk", "ok", f"{format_size(free)} free")


def check_ripgrep(place: Config) -> DoctorFinding:
    found = find_ripgrep(place.environ)
    if found:
        return DoctorFinding("search", "ok", found)
    return DoctorFinding("search", "warn", "no ripgrep: grep and find are slower", ("install ripgrep",))


def check_shell() -> DoctorFinding:
    found = shutil.which("bash") or shutil.which("sh")
    return (
        DoctorFinding("shell", "ok", found)
        if found
        else DoctorFinding("shell", "fail", "there is no shell", ("install bash",))
    )


def check_config(found: Config) -> DoctorFinding:
    if not found.file.exists():
        return DoctorFinding("config", "ok", f"no {found.file}: defaults")
    if found.file.stat().st_mode & OTHERS_MODE and any(one.api_key for one in found.settings.providers.values()):
        return DoctorFinding("config", "warn", f"{found.file} can be read by others", (f"chmod 600 {found.file}",))
    return DoctorFinding("config", "ok", str(found.file))


def check_rules(found: Config, place: Path) -> list[DoctorFinding]:
    """Your rules and those of the project here. What is broken in yours stops every run."""
    book = build_rule_store(found)
    try:
        known = book.read(place)
    except UserError as error:
        return [DoctorFinding("rules", "fail", f"{error}; until then every run fails", error.trouble.next)]
    if known.trouble:
        said = f"{known.trouble}; until then every effect here is asked about"
        return [DoctorFinding("rules", "fail", said, (f"Mend or remove {place / PROJECT_RULES_FILE}.",))]
    yours, own = len(known.user), len(known.project)
    return [
        DoctorFinding(
            "rules", "ok", f"{count_noun(yours, 'rule')} of yours, {own} of this project" if yours or own else "none"
        )
    ]


async def check_app(app: App) -> list[DoctorFinding]:
    """What only the built program can tell: the store, the sandbox and the model services."""
    asked = check_services(await probe_services(app, seconds=PROBE_SECONDS))
    return [*await check_store(app), *check_budget(app), check_sandbox(app), *asked, *check_roles(app)]


def check_roles(app: App) -> Iterator[DoctorFinding]:
    """Models that are to do something, and that no service is set up for: one learns it too late otherwise."""
    told = {**app.roles, "fallback": " ".join(app.config.settings.roles.fallback)}
    for role, models in told.items():
        for model in app.unknown_models(models.split()):
            said = f"{role}: there is no provider for {model}"
            yield DoctorFinding(
                "roles", "warn", said, (f"sylph config set roles.{role} provider/model", "sylph models")
            )


async def check_store(app: App) -> list[DoctorFinding]:
    path = log_path(app.config)
    problems = await app.runtime.check_store()
    if app.runtime.log.read_only:
        return [DoctorFinding("store", "fail", f"{path} cannot be written", (f"check the owner and mode of {path}",))]
    if problems:
        return [DoctorFinding("store", "fail", each.message, each.next or ("sylph verify",)) for each in problems]
    sessions = count_noun(len(await app.runtime.list_sessions()), "session")
    interrupted = [f"sylph resume {one.id}" for one in await app.runtime.list_interrupted()]
    found = [DoctorFinding("store", "ok", f"{path}, {format_size(path.stat().st_size)}, {sessions}")]
    if interrupted:
        found.append(
            DoctorFinding("turns", "warn", f"{count_noun(len(interrupted), 'turn')} interrupted", tuple(interrupted))
        )
    return found


def check_budget(app: App) -> list[DoctorFinding]:
    """The record of what was spent is made from the log; where the two differ it is made anew."""
    found = audit_ledger(app.config.data, log_path(app.config))
    if found is None:
        return []
    if found.damaged:
        return [
            DoctorFinding("budget", "warn", f"the record of spending was damaged and is made anew ({found.damaged})")
        ]
    if found.differ:
        said = f"what {count_noun(len(found.differ), 'session')} spent did not agree with the log; it is counted anew"
        return [DoctorFinding("budget", "warn", said)]
    return [
        DoctorFinding("budget", "ok", f"what was spent agrees with the log in {count_noun(found.sessions, 'session')}")
    ]


def check_sandbox(app: App) -> DoctorFinding:
    layer, told = sandbox_layer(app), app.config.settings.sandbox
    if layer is None or layer.name == "none":
        return DoctorFinding("sandbox", "warn", layer.said if layer else "none", layer.next if layer else ())
    if not told.enabled:
        said = f"off by sandbox.enabled; {layer.said} would do it"
        return DoctorFinding("sandbox", "warn", said, ("sylph config unset sandbox.enabled",))
    if layer.name == "landlock":
        return DoctorFinding("sandbox", "warn", layer.said, layer.next)
    hosts = f" ({', '.join(told.hosts) or 'none'})" if told.network == "hosts" else ""
    return DoctorFinding("sandbox", "ok", f"{layer.said} at {layer.program}, network {told.network}{hosts}")


def check_services(reached: list[ProbedService]) -> list[DoctorFinding]:
    if not any(one.models for one in reached) and not any(one.configured for one in reached):
        return [DoctorFinding("models", "warn", "no model was found", NO_MODEL_HINTS)]
    return [check_service(one) for one in reached]


def check_service(one: ProbedService) -> DoctorFinding:
    if one.trouble:
        key = f" (with {one.key_from})" if one.key_from else ""
        what = f"{one.name} at {one.url}{key}: {one.trouble.message}"
        return DoctorFinding(
            "models", "fail", what, one.trouble.next or ("check its address, its key and the network",)
        )
    only = ", chat only" if all(info.calls is False for info in one.models) else ""
    key = f", with {one.key_from}" if one.key_from else ""
    what = f"{one.name} at {one.url} ({one.dialect}): {count_noun(len(one.models), 'model')}{only}{key}"
    return DoctorFinding("models", "ok", what)
