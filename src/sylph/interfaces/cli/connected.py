"""What is connected, as a table."""

from sylph.access import credentials_of
from sylph.config import Config
from sylph.interfaces.cli.door import Door, put, put_json, put_table
from sylph.interfaces.connected import Connected, connected
from sylph.providers.credentials.others import TOOLS, found
from sylph.providers.table import TABLE


def show(door: Door, *, as_json: bool) -> int:
    config = door.config
    store = credentials_of(config, str)
    rows = list(connected(config, store))
    others = [(tool, path) for tool in TOOLS if (path := found(tool, config.environ)) and not _taken(rows, tool.title)]
    if as_json:
        told = [
            {"tool": tool.name, "title": tool.title, "provider": tool.provider, "path": path} for tool, path in others
        ]
        return put_json({"connected": rows, "others": told, "keep": store.where()})
    if rows:
        cells = [[row.provider, row.kind, row.key or row.account or "-", _state(row), row.key_from] for row in rows]
        put_table([["PROVIDER", "KIND", "KEY", "STATE", "FROM"], *cells], drop=(4, 1))
    else:
        put("Nothing is connected.")
    for row in rows:
        if row.next:
            put(f"{row.provider}: {row.next}")
    if others:
        put("\nOther tools have credentials here. Sylph has not read them, and does so only after your yes:")
        for tool, path in others:
            put(f"  {tool.title} ({path}): sylph connect {tool.provider} --from {tool.name}")
    put(f"\nA new key is kept in {store.where()}.\nsylph connect PROVIDER, with one of: {', '.join(_offered(config))}")
    return 0


def _state(row: Connected) -> str:
    return row.state if row.used else f"{row.state}, another comes first" if row.state == "ok" else row.state


def _taken(rows: list[Connected], title: str) -> bool:
    return any(row.kind == "borrowed" and row.key_from.endswith(title) for row in rows)


def _offered(config: Config) -> list[str]:
    rows = [name for name, row in TABLE.items() if not row.local and not row.like and row.entry != "google"]
    return [*rows, *(name for name in config.settings.providers if name not in TABLE)]
