"""A program of git's or ssh's, run by Sylph itself for a moment: its input, its time and its output are bounded."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sylph.core.errors import UserError

MOST = 200_000


class ProgramOutput(Struct, frozen=True):
    code: int
    out: str
    err: str


async def run_program(
    argv: Sequence[str], env: Mapping[str, str], *, cwd: Path | None = None, stdin: bytes = b"", seconds: float = 10.0
) -> ProgramOutput:
    """Raises UserError where the program is missing, TimeoutError where it takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise UserError(
            f"{argv[0]} cannot be started: {error.strerror}.", kind="no_program", next=["install git and OpenSSH"]
        ) from error
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return ProgramOutput(process.returncode or 0, _decode_output(out), _decode_output(err))


def _decode_output(data: bytes) -> str:
    return data[:MOST].decode("utf-8", "replace")
