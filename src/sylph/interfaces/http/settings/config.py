"""The configuration over HTTP: what counts, where it comes from, and changing it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import Header
from msgspec import Meta, Struct

from sylph.config import Config, Settings
from sylph.config.setting_path import effective_values, format_value, is_secret
from sylph.core.errors import UserError
from sylph.interfaces.actions.file_versions import FileVersion, VersionedFile, content_tag, versions_folder
from sylph.interfaces.http.kit.route import ListPage, RouteGroup, Versioned, check_if_match
from sylph.interfaces.http.state.server_state import ServerState
from sylph.reload import ConfigReloader, is_reloadable

routes = RouteGroup("config")
IfMatch = Annotated[str, Header(max_length=200, description="The ETag of what was read; else the last one wins.")]
MAX_TEXT = 500_000
TextEdit = Callable[[str], str]


class ConfigValue(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
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
    values: list[ConfigValue]
    pending: list[str]
    """Keys that were changed and wait for a restart."""
    trouble: str = ""
    """Why the file as it is now is not used."""


class ConfigBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys to set, with values of their type, and keys to take out of the file. All or nothing."""

    set: Annotated[dict[str, Any], Meta(max_length=200, description="Dotted keys and their values.")] = {}
    unset: Annotated[list[str], Meta(max_length=200, description="Dotted keys.")] = []


class ConfigChange(Struct, frozen=True, kw_only=True):
    """What a change came to."""

    keys: list[str]
    """Keys whose value is another now."""
    restart: bool
    """Whether some of it counts only from the next start on; `pending` says which."""
    pending: list[str]
    trouble: str = ""
    """What is still wrong with the file; until it is mended, what counted before counts on."""


class RawConfigView(Struct, frozen=True, kw_only=True):
    """The file's text. A secret in it is shown as a sign; a text that has the sign keeps the secret."""

    file: str
    text: str


class RawConfigBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=MAX_TEXT)]


def versioned_config_file(config: Config) -> VersionedFile:
    return VersionedFile(config.file, versions_folder(config.home, "config"))


@routes.get("/config", scope="read", gives=ConfigView)
async def get_config(server: ServerState) -> Versioned[ConfigView]:
    """The values that count, and where each comes from. Secrets are masked."""
    server.live_config.check_files()
    config = server.app.config
    values = [
        ConfigValue(
            key=key,
            value=format_value(key, value) if is_secret(key) else value,
            source=config.origins.get(key, "default"),
            secret=is_secret(key),
            live=is_reloadable(key),
        )
        for key, value in effective_values(config.settings).items()
    ]
    view = ConfigView(
        file=str(config.file),
        values=values,
        pending=server.live_config.pending,
        trouble=str(server.live_config.trouble or ""),
    )
    return Versioned(view, content_tag(versioned_config_file(config).read_text() or ""))


@routes.get("/config/schema", scope="read", gives=dict[str, Any])
async def get_config_schema() -> dict[str, Any]:
    """The JSON Schema of the config file."""
    return msgspec.json.schema(Settings)


@routes.patch(
    "/config",
    scope="admin",
    gives=ConfigChange,
    errors=(412,),
    example=ConfigBody(set={"roles.judge": "openai/gpt-5"}, unset=["mode"]),
    answer=ConfigChange(keys=["mode", "roles.judge"], restart=False, pending=[]),
)
async def patch_config(server: ServerState, body: ConfigBody, if_match: IfMatch = "") -> Versioned[ConfigChange]:
    """Set and unset keys in the config file. They are checked first; comments stay."""
    if not body.set and not body.unset:
        raise UserError("Nothing is to be set or unset.", next=['{"set": {"mode": "ask"}}'])

    return await change_settings(server, if_match, body.set, body.unset)


@routes.post("/config/reload", scope="admin", gives=ConfigChange)
async def reload_config(server: ServerState) -> ConfigChange:
    """Take up the config file as it is now, after it was edited elsewhere."""
    async with server.edit_lock:
        return _describe_change(server.live_config, server.live_config.reload_file())


@routes.get("/config/raw", scope="admin", gives=RawConfigView)
async def get_raw_config(server: ServerState) -> Versioned[RawConfigView]:
    """The text of the config file."""
    config = server.app.config
    text = versioned_config_file(config).read_text() or ""
    return Versioned(RawConfigView(file=str(config.file), text=_mask_secrets(text)), content_tag(text))


@routes.put(
    "/config/raw", scope="admin", gives=ConfigChange, errors=(412,), example=RawConfigBody(text='mode = "ask"\n')
)
async def put_raw_config(server: ServerState, body: RawConfigBody, if_match: IfMatch = "") -> Versioned[ConfigChange]:
    """Replace the text of the config file; the one before is kept. What is wrong is refused, with its line."""

    from sylph.interfaces.actions import config_mask
    from sylph.interfaces.actions.config_file import list_config_faults

    def edit(text: str) -> str:
        whole = config_mask.restore_secrets(body.text, text if _is_toml(text) else "")
        for fault in list_config_faults(whole):
            raise UserError(
                f"{fault.key}: {fault.message}",
                kind="config",
                details={"line": config_mask.find_setting_line(whole, fault.key) or "unknown", "key": fault.key},
                next=["the schema tells what it may be"],
            )
        return whole

    return await _edit_config_file(server, if_match, edit)


@routes.get("/config/versions", scope="admin", gives=ListPage[FileVersion])
async def list_config_versions(server: ServerState) -> ListPage[FileVersion]:
    """Earlier texts of the config file, the newest first."""
    return ListPage(items=versioned_config_file(server.app.config).list_versions())


@routes.post("/config/versions/{id}/restore", scope="admin", gives=ConfigChange, errors=(404, 412))
async def restore_config(server: ServerState, id: str, if_match: IfMatch = "") -> Versioned[ConfigChange]:
    """Make an earlier text count again."""
    from sylph.interfaces.actions.config_file import validate_config

    text = versioned_config_file(server.app.config).read_version(id)
    return await _edit_config_file(server, if_match, lambda _: validate_config(text))


async def change_settings(
    server: ServerState, if_match: str, values: Mapping[str, Any], unset: Sequence[str] = ()
) -> Versioned[ConfigChange]:
    """Sets and unsets keys of the file."""
    from sylph.interfaces.actions.config_file import assign_setting, remove_setting

    def edit(text: str) -> str:
        for key in unset:
            text = remove_setting(text, key)
        for key, value in values.items():
            text = assign_setting(text, key, value)
        return text

    return await _edit_config_file(server, if_match, edit)


async def _edit_config_file(server: ServerState, if_match: str, edit: TextEdit) -> Versioned[ConfigChange]:
    """Changes the file if it is still what it was, and takes it up. What cannot be used is not written."""
    from sylph.interfaces.actions.config_file import list_config_faults

    async with server.edit_lock:
        server.live_config.check_files()
        file = versioned_config_file(server.app.config)
        before = await asyncio.to_thread(file.read_text) or ""
        check_if_match(content_tag(before), if_match)
        text = edit(before)
        if not list_config_faults(text):
            server.live_config.read_config(text)
        await asyncio.to_thread(file.write, text)
        try:
            keys = server.live_config.reload_file()
            server.provider_status.invalidate()
        except UserError as error:
            server.live_config.trouble, keys = error, []
            server.live_config.told()
        return Versioned(_describe_change(server.live_config, keys), content_tag(text))


def _describe_change(live: ConfigReloader, keys: list[str]) -> ConfigChange:
    pending = live.pending
    return ConfigChange(keys=keys, restart=bool(pending), pending=pending, trouble=str(live.trouble or ""))


def _mask_secrets(text: str) -> str:
    """What is not even TOML has no keys to find secrets by: its strings are hidden."""
    from sylph.interfaces.actions import config_mask

    return config_mask.mask_secrets(text) if _is_toml(text) else config_mask.blank_secrets(text)


def _is_toml(text: str) -> bool:
    from sylph.interfaces.actions.config_file import list_config_faults

    try:
        list_config_faults(text)
    except UserError:
        return False
    return True
