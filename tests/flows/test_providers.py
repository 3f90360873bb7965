"""Providers as rows of a table, with the real program."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.flows.program import Model, Sylph, finished
from tests.model_server import ModelServer, say

# The program with one row more in its table, and nothing else changed.
WITH_A_ROW = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.find_spec("sylph.providers.vendors.table")
source = Path(spec.origin).read_text()
row = 'Vendor(name="acme", title="Acme", dialect="chat", base_url="{url}", key_variables=("ACME_KEY",), '
row += 'headers={"X-Is": "acme"}),'
at = source.index("VENDORS: tuple[Vendor, ...] = (") + len("VENDORS: tuple[Vendor, ...] = (")
table = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = table
exec(compile(source[:at] + row.replace("{url}", sys.argv.pop(1)) + source[at:], spec.origin, "exec"), table.__dict__)
from sylph.__main__ import main
sys.exit(main())
"""


async def test_a_provider_is_a_row(sylph: Sylph) -> None:
    async with ModelServer([say("Hello from Acme.")]) as server:

        async def run(*words: str) -> tuple[int, str]:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", WITH_A_ROW, server.url, *words,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                cwd=sylph.workspace, env=sylph.env({"ACME_KEY": "a-key-of-acme"}),
            )  # fmt: skip
            done = await finished(process)
            return done.code, done.out + done.err

        assert "* acme/scripted" in (await run("models"))[1]
        code, said = await run("run", "hello")
        assert (code, said.splitlines()[0]) == (0, "Hello from Acme.")
        assert "ok    models" in (await run("doctor"))[1]
    (asked,) = server.requests
    assert (asked.headers["authorization"], asked.headers["x-is"]) == ("Bearer a-key-of-acme", "acme")


@pytest.mark.parametrize("variable", ["XAI", "TOGETHER", "DEEPSEEK"])
async def test_a_vendors_own_variables_are_enough(sylph: Sylph, variable: str) -> None:
    async with ModelServer([say("Hello.")]) as server:
        environ = {f"{variable}_API_KEY": "k", f"{variable}_BASE_URL": server.url}
        sylph.environ.update(environ)
        done = await sylph.run("run", "hello")
    assert (done.code, done.out) == (0, "Hello.\n")
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_what_a_known_provider_still_needs_is_told(sylph: Sylph) -> None:
    done = await sylph.run("run", "-m", "groq/llama", "hello")
    assert done.code == 4
    assert "set GROQ_API_KEY to a key of Groq (get one at console.groq.com/keys)" in done.err


async def test_headers_and_a_dialect_come_from_the_file_and_are_not_shown(sylph: Sylph, model: Model) -> None:
    server = await model([say("Hello.")])
    sylph.environ.clear()
    for key, value in (("base_url", server.url), ("dialect", "chat"), ("headers.X-Token", "secret-of-the-gateway")):
        assert (await sylph.run("config", "set", f"providers.mine.{key}", value)).code == 0
    assert (await sylph.run("run", "hello")).out == "Hello.\n"
    assert server.requests[0].headers["x-token"] == "secret-of-the-gateway"
    assert "secret-of" not in (await sylph.run("config")).out
    assert "secret-of" not in (await sylph.run("config", "--json")).out
    refused = await sylph.run("config", "set", "providers.mine.dialect", "latin")
    assert refused.code != 0
    assert "must be one of" in refused.err


async def test_the_fastest_answer_does_not_win_over_the_first(sylph: Sylph, tmp_path: Path) -> None:
    async with ModelServer([say("First.")]) as one, ModelServer([say("Second.")]) as other:
        config = sylph.home / "sylph" / "config.toml"
        tables = "".join(
            f"[providers.{name}]\nbase_url = '{url}'\n" for name, url in (("a", one.url), ("b", other.url))
        )
        config.write_text(f"probe = false\n{tables}")
        assert (await sylph.run("run", "hello")).out == "First.\n"
