"""What is connected, as a table."""

from sylph.compose.credentials import open_credential_store
from sylph.config import Config
from sylph.interfaces.cli.kit.cli_context import CliContext, print_json, print_table, print_text
from sylph.interfaces.reports.credential_report import ConnectedCredential, list_connected_credentials
from sylph.providers.credentials.other_tools import TOOL_CREDENTIALS, find_tool_file
from sylph.providers.vendors.table import VENDORS_BY_NAME


def show_credentials(cli: CliContext, *, as_json: bool) -> int:
    config = cli.config
    store = open_credential_store(config, str)
    rows = list(list_connected_credentials(config, store))
    others = [
        (tool, path)
        for tool in TOOL_CREDENTIALS
        if (path := find_tool_file(tool, config.environ)) and not _is_borrowed(rows, tool.title)
    ]
    if as_json:
        told = [
            {"tool": tool.name, "title": tool.title, "provider": tool.provider, "path": path} for tool, path in others
        ]
        return print_json({"connected": rows, "others": told, "keep": store.describe_location()})
    if rows:
        cells = [
            [row.provider, row.kind, row.key or row.account or "-", _state_text(row), row.key_from] for row in rows
        ]
        print_table([["PROVIDER", "KIND", "KEY", "STATE", "FROM"], *cells], drop=(4, 1))
    else:
        print_text("Nothing is connected.")
    for row in rows:
        if row.next:
            print_text(f"{row.provider}: {row.next}")
    if others:
        print_text("\nOther tools have credentials here. Sylph has not read them, and does so only after your yes:")
        for tool, path in others:
            print_text(f"  {tool.title} ({path}): sylph connect {tool.provider} --from {tool.name}")
    print_text(
        f"\nA new key is kept in {store.describe_location()}.\n"
        f"sylph connect PROVIDER, with one of: {', '.join(_provider_names(config))}"
    )
    return 0


def _state_text(row: ConnectedCredential) -> str:
    return row.state if row.used else f"{row.state}, another comes first" if row.state == "ok" else row.state


def _is_borrowed(rows: list[ConnectedCredential], title: str) -> bool:
    return any(row.kind == "borrowed" and row.key_from.endswith(title) for row in rows)


def _provider_names(config: Config) -> list[str]:
    rows = [
        name
        for name, row in VENDORS_BY_NAME.items()
        if not row.local and not row.variant_of and row.auth_method != "google"
    ]
    return [*rows, *(name for name in config.settings.providers if name not in VENDORS_BY_NAME)]
