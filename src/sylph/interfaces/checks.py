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
from sylph.access import credentials_of
from sylph.app import NO_MODEL, App
from sylph.config import Config
from sylph.config.rulebook import PROJECT
from sylph.core.errors import StoreError, UserError
from sylph.core.text import count
from sylph.engine.budget.audit import audit
from sylph.interfaces.confinement import layer_of
from sylph.interfaces.reach import Reached, reach
from sylph.interfaces.render import size
from sylph.interfaces.versions import BEFORE, FOLDER
from sylph.interfaces.written import VERSIONED
from sylph.providers.credentials.entry import Entry
from sylph.tools.ripgrep import located
from sylph.wiring import rulebook_of, store_of

Grade = Literal["ok", "warn", "fail"]
SECONDS = 2.0
LITTLE = 1 << 30
OTHERS = 0o077


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at."""

    what: str
    grade: Grade
    said: str
    next: tuple[str, ...] = ()


def machine(place: Config) -> Iterator[Finding]:
    """What does not depend on the configuration."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("sylph", "ok", f"{__version__}, Python {version}, SQLite {sqlite3.sqlite_version}")
    yield folder("home", place.home)
    yield folder("data", place.data)
    yield from kept(place)
    yield space(place.data)
    yield credentials(place)
    yield search(place)
    yield shell()
    kind = place.terminal.kind or "none"
    yield Finding(
        "terminal", "ok", f"{kind}, {sys.stdout.encoding}, colours {'on' if place.terminal.colour else 'off'}"
    )


def folder(what: str, path: Path) -> Finding:
    if not path.exists():
        return Finding(what, "ok", f"{path} (made when it is needed)")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding(what, "fail", f"{path} cannot be written", (f"chown or chmod {path}, or set SYLPH_HOME",))
    if path.stat().st_mode & OTHERS:
        return Finding(what, "warn", f"{path} can be looked into by others", (f"chmod 700 {path}",))
    return Finding(what, "ok", str(path))


def kept(place: Config) -> Iterator[Finding]:
    """What is no file where the chat wants one, and no folder where earlier versions of files are to lie."""
    typed, old = place.home / BEFORE, place.home / FOLDER
    # What an older Sylph has left there is taken along by itself.
    if typed.is_dir() and any(each.name not in VERSIONED for each in typed.iterdir()):
        yield Finding("home", "fail", f"{typed} is a folder: the chat cannot begin", (f"mv {typed} {typed}.old",))
    if old.exists() and not old.is_dir():
        said = f"{old} is no folder: settings and identity cannot be changed by a server"
        yield Finding("home", "fail", said, (f"mv {old} {old}.old",))


def credentials(place: Config) -> Finding:
    """What is stored of keys and logins, looked at without opening any of it."""
    store = credentials_of(place, str)
    entries = list(store.entries())
    for damaged in (each for each in entries if isinstance(each, StoreError)):
        return Finding("keys", "fail", str(damaged), damaged.trouble.next)
    over = [each.provider for each in entries if isinstance(each, Entry) and each.ended]
    if over:
        said = f"the login to {', '.join(over)} is over"
        return Finding("keys", "warn", said, tuple(f"sylph connect {name}" for name in over))
    if bare := store.bare():
        said = f"a passphrase is set, and yet what is stored for {', '.join(bare)} is not sealed"
        return Finding("keys", "warn", said, ("sylph connect passphrase",))
    if not entries:
        return Finding("keys", "ok", "none stored: sylph connect  saves a key or logs in")
    return Finding("keys", "ok", f"{count(len(entries), 'credential')} stored; a new one goes to {store.where()}")


def space(path: Path) -> Finding:
    there = next(each for each in (path, *path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < LITTLE:
        return Finding(
            "disk", "warn", f"only {size(free)} free at {there}", ("make room: a full disk stops every turn",)
        )
    return Finding("disk", "ok", f"{size(free)} free")


def search(place: Config) -> Finding:
    found = located(place.environ)
    if found:
        return Finding("search", "ok", found)
    return Finding("search", "warn", "no ripgrep: grep and find are slower", ("install ripgrep",))


def shell() -> Finding:
    found = shutil.which("bash") or shutil.which("sh")
    return Finding("shell", "ok", found) if found else Finding("shell", "fail", "there is no shell", ("install bash",))


def config(found: Config) -> Finding:
    if not found.file.exists():
        return Finding("config", "ok", f"no {found.file}: defaults")
    if found.file.stat().st_mode & OTHERS and any(one.api_key for one in found.settings.providers.values()):
        return Finding("config", "warn", f"{found.file} can be read by others", (f"chmod 600 {found.file}",))
    return Finding("config", "ok", str(found.file))


def rules(found: Config, place: Path) -> list[Finding]:
    """Your rules and those of the project here. What is broken in yours stops every run."""
    book = rulebook_of(found)
    try:
        known = book.read(place)
    except UserError as error:
        return [Finding("rules", "fail", f"{error}; until then every run fails", error.trouble.next)]
    if known.trouble:
        said = f"{known.trouble}; until then every effect here is asked about"
        return [Finding("rules", "fail", said, (f"Mend or remove {place / PROJECT}.",))]
    yours, own = len(known.user), len(known.project)
    return [
        Finding("rules", "ok", f"{count(yours, 'rule')} of yours, {own} of this project" if yours or own else "none")
    ]


async def program(app: App) -> list[Finding]:
    """What only the built program can tell: the store, the sandbox and the model services."""
    asked = services(await reach(app, seconds=SECONDS))
    return [*await store(app), *budget(app), sandbox(app), *asked, *roles(app)]


def roles(app: App) -> Iterator[Finding]:
    """Models that are to do something, and that no service is set up for: one learns it too late otherwise."""
    told = {**app.roles, "fallback": " ".join(app.config.settings.roles.fallback)}
    for role, models in told.items():
        for model in app.unknown(models.split()):
            said = f"{role}: there is no provider for {model}"
            yield Finding("roles", "warn", said, (f"sylph config set roles.{role} provider/model", "sylph models"))


async def store(app: App) -> list[Finding]:
    path = store_of(app.config)
    problems = await app.runtime.checkup()
    if app.runtime.log.read_only:
        return [Finding("store", "fail", f"{path} cannot be written", (f"check the owner and mode of {path}",))]
    if problems:
        return [Finding("store", "fail", each.message, each.next or ("sylph verify",)) for each in problems]
    sessions = count(len(await app.runtime.sessions()), "session")
    interrupted = [f"sylph resume {one.id}" for one in await app.runtime.interrupted()]
    found = [Finding("store", "ok", f"{path}, {size(path.stat().st_size)}, {sessions}")]
    if interrupted:
        found.append(Finding("turns", "warn", f"{count(len(interrupted), 'turn')} interrupted", tuple(interrupted)))
    return found


def budget(app: App) -> list[Finding]:
    """The record of what was spent is made from the log; where the two differ it is made anew."""
    found = audit(app.config.data, store_of(app.config))
    if found is None:
        return []
    if found.damaged:
        return [Finding("budget", "warn", f"the record of spending was damaged and is made anew ({found.damaged})")]
    if found.differ:
        said = f"what {count(len(found.differ), 'session')} spent did not agree with the log; it is counted anew"
        return [Finding("budget", "warn", said)]
    return [Finding("budget", "ok", f"what was spent agrees with the log in {count(found.sessions, 'session')}")]


def sandbox(app: App) -> Finding:
    layer, told = layer_of(app), app.config.settings.sandbox
    if layer is None or layer.name == "none":
        return Finding("sandbox", "warn", layer.said if layer else "none", layer.next if layer else ())
    if not told.enabled:
        said = f"off by sandbox.enabled; {layer.said} would do it"
        return Finding("sandbox", "warn", said, ("sylph config unset sandbox.enabled",))
    if layer.name == "landlock":
        return Finding("sandbox", "warn", layer.said, layer.next)
    hosts = f" ({', '.join(told.hosts) or 'none'})" if told.network == "hosts" else ""
    return Finding("sandbox", "ok", f"{layer.said} at {layer.program}, network {told.network}{hosts}")


def services(reached: list[Reached]) -> list[Finding]:
    if not any(one.models for one in reached) and not any(one.configured for one in reached):
        return [Finding("models", "warn", "no model was found", NO_MODEL)]
    return [service(one) for one in reached]


def service(one: Reached) -> Finding:
    if one.trouble:
        key = f" (with {one.key_from})" if one.key_from else ""
        what = f"{one.name} at {one.url}{key}: {one.trouble.message}"
        return Finding("models", "fail", what, one.trouble.next or ("check its address, its key and the network",))
    only = ", chat only" if all(info.calls is False for info in one.models) else ""
    key = f", with {one.key_from}" if one.key_from else ""
    what = f"{one.name} at {one.url} ({one.dialect}): {count(len(one.models), 'model')}{only}{key}"
    return Finding("models", "ok", what)
