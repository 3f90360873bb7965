"""Everything that was said can be found again; what was deleted or erased cannot."""

from pathlib import Path

import pytest
from tests.engine.stage import TOOLS

from sylph.core import commands
from sylph.core.errors import UserError
from sylph.core.history_search import HistoryQuery
from sylph.engine.log.search import LogSearch
from sylph.engine.runtime.runtime import Runtime
from sylph.testing import begin_session, call_tool, play_turn, say, scripted_runtime


async def talk(engine: Runtime, home: Path, *words: str) -> str:
    session = await begin_session(engine, home)
    for said in words:
        await play_turn(engine, session, said)
    return session


def archive(engine: Runtime) -> LogSearch:
    return LogSearch(engine.log.path)


async def places(engine: Runtime, words: str, **how: object) -> list[tuple[str, str, str]]:
    findings = await archive(engine).search(HistoryQuery(words=words, **how))  # pyright: ignore[reportArgumentType]
    return [(found.session, found.role, found.text) for found in findings.found]


async def test_words_are_found_wherever_they_were_said(home: Path) -> None:
    lines = [call_tool("put", path="Zebra.txt"), say("I wrote about the ZEBRA."), say("Nothing.")]
    async with scripted_runtime(home, lines, tools=TOOLS) as engine:
        first = await talk(engine, home, "tell me of a zebra")
        await talk(engine, home, "and of a horse")
        found = await places(engine, "zebra")
        assert [(session, role) for session, role, _ in found[:1]] == [(first, "assistant")]
        assert {role for session, role, _ in found if session == first} >= {"user", "assistant", "call"}
        assert await places(engine, "zebra horse") == []
        assert len(await places(engine, "zebra", role="user")) == 1
        assert await places(engine, "zebra", without=first) == []
        assert await places(engine, "zebra", since=2**52) == []


async def test_a_phrase_stays_together_and_odd_characters_are_found(home: Path) -> None:
    async with scripted_runtime(home, [say('She said "Größe\n17" \\ twice')]) as engine:
        session = await talk(engine, home, "what did she say?")
        assert await places(engine, '"what did she"') == [(session, "user", "what did she say?")]
        assert await places(engine, '"did what"') == []
        assert len(await places(engine, "GRÖSSE")) == 1
        assert len(await places(engine, "\\")) == 1


async def test_the_number_of_places_is_bounded(home: Path) -> None:
    async with scripted_runtime(home, [say("echo")] * 5) as engine:
        session = await talk(engine, home, *["echo"] * 5)
        findings = await archive(engine).search(HistoryQuery(words="echo", limit=3))
        assert (len(findings.found), findings.more) == (3, True)
        assert [found.seq for found in findings.found] == sorted((found.seq for found in findings.found), reverse=True)
        whole = await archive(engine).fact(session[:8], findings.found[0].seq)
        assert whole
        assert whole.text == "echo"
        assert await archive(engine).fact(session, 9999) is None


async def test_deleted_sessions_and_erased_secrets_are_not_found(home: Path) -> None:
    async with scripted_runtime(home, [say("the password is hunter22"), say("xyzzy")]) as engine:
        kept = await talk(engine, home, "tell me")
        gone = await talk(engine, home, "say it")
        assert await engine.erase_secret(kept, "hunter22")
        assert await places(engine, "hunter22") == []
        await engine.send(gone, commands.Delete())
        assert await places(engine, "xyzzy") == []
        assert await archive(engine).fact(gone, 2) is None
        await engine.send(gone, commands.Restore())
        assert len(await places(engine, "xyzzy")) == 1


async def test_nothing_to_look_for_is_refused(home: Path) -> None:
    async with scripted_runtime(home, []) as engine:
        with pytest.raises(UserError, match="nothing to look for"):
            await archive(engine).search(HistoryQuery(words="  "))


async def test_only_the_sessions_of_one_workspace_can_be_wanted(home: Path) -> None:
    other = home / "other"
    other.mkdir()
    async with scripted_runtime(home, [say("zebra")] * 2) as engine:
        here, there = await talk(engine, home, "one"), await talk(engine, other, "two")
        assert {session for session, _, _ in await places(engine, "zebra")} == {here, there}
        assert {session for session, _, _ in await places(engine, "zebra", workspace=str(other))} == {there}
        seq = (await archive(engine).search(HistoryQuery(words="zebra", session=here))).found[0].seq
        assert await archive(engine).fact(here, seq)
        assert await archive(engine).fact(here, seq, str(other)) is None
