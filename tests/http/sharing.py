"""One running server for all tests of a module, where they do not get in each other's way."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.flows.program import Sylph
from tests.http.served import Served, serving
from tests.model_server import ModelServer, Script

KEY = "sk-a-key-for-tests-0123456789"


@asynccontextmanager
async def sharing(folder: Path, script: Script, config: str = "", **environ: str) -> AsyncGenerator[Served, None]:
    home, workspace = folder / "home", folder / "work"
    workspace.mkdir()
    (home / "sylph").mkdir(parents=True, mode=0o700)
    (home / "sylph" / "config.toml").write_text(f"# mine\nprobe = false\n{config}")
    sylph = Sylph(home, workspace)
    async with ModelServer(script) as model:
        sylph.environ.update(OPENAI_BASE_URL=model.url, OPENAI_API_KEY=KEY, **environ)
        async with serving(sylph) as served:
            yield served
