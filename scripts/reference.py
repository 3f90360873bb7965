"""Writes what the docs take from the code; with --check only says whether it is up to date."""

import json
import sys
from pathlib import Path

import typescript

from sylph.core.facts import reference
from sylph.interfaces.handbook_blocks import fill_blocks

DOCS = Path(__file__).parent.parent / "docs" / "reference"
HANDBOOK = DOCS.parent / "handbook"
EVENTS = DOCS.parent.parent / "web" / "src" / "log" / "events.ts"


def pages() -> dict[Path, str]:
    return {
        DOCS / "events.md": reference.render_page(),
        DOCS / "events.schema.json": json.dumps(reference.event_schema(), indent=2, ensure_ascii=False) + "\n",
        EVENTS: typescript.events(reference.event_schema()),
        **{page: fill_blocks(page.read_text(encoding="utf-8")) for page in sorted(HANDBOOK.glob("*.md"))},
    }


def main() -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        sys.stdout.writelines(f"stale: {path.name}\n" for path in stale)
        return bool(stale)
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
