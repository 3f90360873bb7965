"""The configuration over HTTP: what counts, where it comes from, and changing it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import Header
from msgspec import Meta, Struct

from sylph.config import Config, Settings
from sylph.config.keys import effective, is_secret, shown
from sylph.core.errors import UserError
from sylph.interfaces.http.house import House
from sylph.interfaces.http.route import Page, Routes, Versioned, unchanged
from sylph.interfaces.versions import Version, Versions, folder_of, tag_of
from sylph.reload import Live, is_live

routes = Routes("config")
IfMatch = Annotated[str, Header(max_length=200, description="The ETag of what was read; else the last one wins.")]
LONGEST = 500_000
Edit = Callable[[str], str]


class Value(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """One key. A secret's value is masked."""

    key: str
    value: Any
    source: str
    """`default`, a variable, or the file."""
    secret: bool
    live: bool
    """Whether a change counts at once; else from the next start on."""


class ConfigView(Struct, frozen=True, kw_only=True):
    file: str
    values: list[Value]
    pending: list[str]
    """Keys that were changed and wait for a restart."""
    trouble: str = ""
    """Why the file as it is now is not used."""


class ConfigBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys to set, with values of their type, and keys to take out of the file. All or nothing."""

    set: Annotated[dict[str, Any], Meta(max_length=200, description="Dotted keys and their values.")] = {}
    unset: Annotated[list[str], Meta(max_length=200, description="Dotted keys.")] = []


class Changed(Struct, frozen=True, kw_only=True):
    """What a change came to."""

    keys: list[str]
    """Keys whose value is another now."""
    restart: bool
    """Whether some of it counts only from the next start on; `pending` says which."""
    pending: list[str]
    trouble: str = ""
    """What is still wrong with the file; until it is mended, what counted before counts on."""


class RawView(Struct, frozen=True, kw_only=True):
    """The file's text. A secret in it is shown as a sign; a text that has the sign keeps the secret."""

    file: str
    text: str


class RawBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=LONGEST)]


def file_of(config: Config) -> Versions:
    return Versions(config.file, folder_of(config.home, "config"))


@routes.get("/config", scope="read", gives=ConfigView)
async def get(house: House) -> Versioned[ConfigView]:
    """The values that count, and where each comes from. Secrets are masked."""
    house.live.look()
    config = house.app.config
    values = [
        Value(
            key=key,
            value=shown(key, value) if is_secret(key) else value,
            source=config.origins.get(key, "default"),
            secret=is_secret(key),
            live=is_live(key),
        )
        for key, value in effective(config.settings).items()
    ]
    view = ConfigView(
        file=str(config.file), values=values, pending=house.live.pending, trouble=str(house.live.trouble or "")
    )
    return Versioned(view, tag_of(file_of(config).text() or ""))


@routes.get("/config/schema", scope="read", gives=dict[str, Any])
async def schema() -> dict[str, Any]:
    """The JSON Schema of the config file."""
    return msgspec.json.schema(Settings)


@routes.patch(
    "/config",
    scope="admin",
    gives=Changed,
    errors=(412,),
    example=ConfigBody(set={"roles.judge": "openai/gpt-5"}, unset=["mode"]),
    answer=Changed(keys=["mode", "roles.judge"], restart=False, pending=[]),
)
async def patch(house: House, body: ConfigBody, if_match: IfMatch = "") -> Versioned[Changed]:
    """Set and unset keys in the config file. They are checked first; comments stay."""
    if not body.set and not body.unset:
        raise UserError("Nothing is to be set or unset.", next=['{"set": {"mode": "ask"}}'])

    return await change(house, if_match, body.set, body.unset)


@routes.post("/config/reload", scope="admin", gives=Changed)
async def reload(house: House) -> Changed:
    """Take up the config file as it is now, after it was edited elsewhere."""
    async with house.editing:
        return _changed(house.live, house.live.take())


@routes.get("/config/raw", scope="admin", gives=RawView)
async def raw(house: House) -> Versioned[RawView]:
    """The text of the config file."""
    config = house.app.config
    text = file_of(config).text() or ""
    return Versioned(RawView(file=str(config.file), text=_shown(text)), tag_of(text))


@routes.put("/config/raw", scope="admin", gives=Changed, errors=(412,), example=RawBody(text='mode = "ask"\n'))
async def put_raw(house: House, body: RawBody, if_match: IfMatch = "") -> Versioned[Changed]:
    """Replace the text of the config file; the one before is kept. What is wrong is refused, with its line."""

    from sylph.interfaces import masked
    from sylph.interfaces.settings import wrongs

    def edit(text: str) -> str:
        whole = masked.unmasked(body.text, text if _readable(text) else "")
        for fault in wrongs(whole):
            raise UserError(
                f"{fault.key}: {fault.message}",
                kind="config",
                details={"line": masked.line_of(whole, fault.key) or "unknown", "key": fault.key},
                next=["the schema tells what it may be"],
            )
        return whole

    return await _change(house, if_match, edit)


@routes.get("/config/versions", scope="admin", gives=Page[Version])
async def versions(house: House) -> Page[Version]:
    """Earlier texts of the config file, the newest first."""
    return Page(items=file_of(house.app.config).all())


@routes.post("/config/versions/{id}/restore", scope="admin", gives=Changed, errors=(404, 412))
async def restore(house: House, id: str, if_match: IfMatch = "") -> Versioned[Changed]:
    """Make an earlier text count again."""
    from sylph.interfaces.settings import checked

    text = file_of(house.app.config).get(id)
    return await _change(house, if_match, lambda _: checked(text))


async def change(
    house: House, if_match: str, values: Mapping[str, Any], unset: Sequence[str] = ()
) -> Versioned[Changed]:
    """Sets and unsets keys of the file."""
    from sylph.interfaces.settings import assign, remove

    def edit(text: str) -> str:
        for key in unset:
            text = remove(text, key)
        for key, value in values.items():
            text = assign(text, key, value)
        return text

    return await _change(house, if_match, edit)


async def _change(house: House, if_match: str, edit: Edit) -> Versioned[Changed]:
    """Changes the file if it is still what it was, and takes it up. What cannot be used is not written."""
    from sylph.interfaces.settings import wrongs

    async with house.editing:
        house.live.look()
        file = file_of(house.app.config)
        before = await asyncio.to_thread(file.text) or ""
        unchanged(tag_of(before), if_match)
        text = edit(before)
        if not wrongs(text):
            house.live.read(text)
        await asyncio.to_thread(file.write, text)
        try:
            keys = house.live.take()
            house.services.forget()
        except UserError as error:
            house.live.trouble, keys = error, []
            house.live.told()
        return Versioned(_changed(house.live, keys), tag_of(text))


def _changed(live: Live, keys: list[str]) -> Changed:
    pending = live.pending
    return Changed(keys=keys, restart=bool(pending), pending=pending, trouble=str(live.trouble or ""))


def _shown(text: str) -> str:
    """What is not even TOML has no keys to find secrets by: its strings are hidden."""
    from sylph.interfaces import masked

    return masked.masked(text) if _readable(text) else masked.blanked(text)


def _readable(text: str) -> bool:
    from sylph.interfaces.settings import wrongs

    try:
        wrongs(text)
    except UserError:
        return False
    return True
