"""The ways to a person that they have set up: a webhook, a program of their own, the terminal."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

import msgspec
from msgspec import Struct, field

from sylph.core.errors import ErrorReport, ProviderError
from sylph.core.facts.delivery import (
    DOOR_CHANNEL,
    DeliveryError,
    DeliveryRecorded,
    NotificationOccasion,
    delivery_key,
    unknown_channel_report,
)
from sylph.core.text.formatting import first_line

WEBHOOK, COMMAND = "webhook", "command"
# The service may do better later: it is busy, it is being mended, or our first try is still under way there.
RETRYABLE_STATUSES = frozenset({408, 409, 423, 425, 429})
SETUP_HINT = "`sylph config` shows what is set under `notify`."
MAX_ANSWER_SIZE = 2000


class WebhookAnswer(Protocol):
    status: int
    headers: dict[str, str]

    async def read(self, limit: int = ...) -> bytes: ...


class WebhookPost(Protocol):
    def __call__(
        self, url: str, body: bytes, *, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[WebhookAnswer]: ...


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a webhook gets. A repeat has the same bytes, and the same key."""

    title: str
    text: str
    urgency: str
    why: str
    session: str
    key: str


class ConfiguredCourier(Struct, kw_only=True):
    """A core.deliveries.Courier for what the person has set up, which may change while it is at work."""

    post: WebhookPost
    webhook: str = ""
    command: Sequence[str] = ()
    on: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float | None = 10.0

    def channels(self, why: NotificationOccasion, name: str) -> Sequence[str]:  # noqa: ARG002 - whatever it is about
        if why != "notify" and why not in self.on:
            return ()
        return (DOOR_CHANNEL, *([WEBHOOK] if self.webhook else []), *([COMMAND] if self.command else []))

    async def send(self, session: str, parcel: DeliveryRecorded) -> None:
        if parcel.channel == WEBHOOK and self.webhook:
            await self._post_webhook(session, parcel)
        elif parcel.channel == COMMAND and self.command:
            await self._run_command(session, parcel)
        else:
            raise DeliveryError(unknown_channel_report(parcel.channel), final=True)

    async def _post_webhook(self, session: str, parcel: DeliveryRecorded) -> None:
        key = delivery_key(session, parcel)
        body = WebhookBody(
            title=parcel.title, text=parcel.text, urgency=parcel.urgency, why=parcel.why, session=session, key=key
        )
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            async with self.post(self.webhook, msgspec.json.encode(body), headers=headers) as answer:
                status, later = answer.status, answer.headers.get("retry-after", "")
                said = b"" if status < 300 else await answer.read(MAX_ANSWER_SIZE)
        except ProviderError as error:
            raise _webhook_failure(error) from error
        if status >= 300:
            passing = status >= 500 or status in RETRYABLE_STATUSES
            message = f"The webhook answered {status}: {first_line(said.decode(errors='replace'), 200)}".rstrip(": ")
            trouble = ErrorReport("http_status", message, {"status": str(status)}, () if passing else (SETUP_HINT,))
            raise DeliveryError(trouble, final=not passing, after=float(later) if later.isdecimal() else None)

    async def _run_command(self, session: str, parcel: DeliveryRecorded) -> None:
        """Runs the person's own program, beside everything that the agent runs."""
        told = {"title": parcel.title, "text": parcel.text, "urgency": parcel.urgency, "session": session}
        told |= {"why": parcel.why, "key": delivery_key(session, parcel)}
        variables = {f"SYLPH_{name.upper()}": value.replace("\0", "") for name, value in told.items()}
        try:
            process = await asyncio.create_subprocess_exec(
                *build_arguments(self.command, told),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={**self.environ, **variables},
                start_new_session=True,
            )
        except OSError as error:
            message = f"{self.command[0]} cannot be started: {error.strerror}."
            raise DeliveryError(ErrorReport("no_command", message, next=(SETUP_HINT,)), final=True) from error
        try:
            said = await _read_stderr(process)
            code = await process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise
        if code:
            message = f"{self.command[0]} ended with {code}: {first_line(said, 200)}".rstrip(": ")
            raise DeliveryError(ErrorReport("command_failed", message, {"exit": str(code)}))


async def _read_stderr(process: asyncio.subprocess.Process) -> str:
    """The beginning of what it complained about; the rest is read and thrown away."""
    assert process.stderr
    kept = await process.stderr.read(MAX_ANSWER_SIZE)
    while await process.stderr.read(65_536):
        pass
    return kept.decode(errors="replace")


def build_arguments(command: Sequence[str], told: Mapping[str, str]) -> list[str]:
    """The command with what is to be told in place of `{title}`, `{text}` …; without any of these, at its end.

    What is told never looks like an option.
    """
    safe = {name: _escape_argument(value) for name, value in told.items()}
    marks = {f"{{{name}}}": value for name, value in safe.items()}
    if not any(mark in word for word in command for mark in marks):
        return [*command, safe["title"], *([safe["text"]] if safe["text"] else [])]
    return [command[0], *(_fill_marks(word, marks) for word in command[1:])]


def _fill_marks(word: str, marks: Mapping[str, str]) -> str:
    """Each mark is replaced once: what was told may hold one itself."""
    parts = [word]
    for mark in marks:
        parts = [piece for part in parts for piece in (_split_at_mark(part, mark) if part not in marks else [part])]
    return "".join(marks.get(part, part) for part in parts)


def _split_at_mark(part: str, mark: str) -> list[str]:
    pieces = part.split(mark)
    return [piece for pair in ((piece, mark) for piece in pieces) for piece in pair][:-1]


def _escape_argument(value: str) -> str:
    text = value.replace("\0", "")
    return f" {text}" if text.startswith("-") else text


def _webhook_failure(error: ProviderError) -> DeliveryError:
    """The address may be a secret: of what went wrong only that is told which does not show it."""
    if 300 <= error.status < 400:
        trouble = ErrorReport("redirected", "The webhook sends us on to another address.", next=(SETUP_HINT,))
        return DeliveryError(trouble, final=True)
    return DeliveryError(error.trouble, final=not error.is_retryable)
