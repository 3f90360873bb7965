"""A model service that charges: its bill grows when a request has arrived, whatever becomes of whoever sent it."""

import asyncio
import json
import random
from contextlib import suppress

from msgspec import Struct

from sylph.core.messages import Usage

# Micro-dollars for a token of input and of output.
PRICE_IN, PRICE_OUT = 1, 5
# How many bytes make a token here; fewer than Sylph reckons with, so it must hold something back.
BYTES_PER_TOKEN = 3
SHARE_CUT, SHARE_BUSY = 0.03, 0.03
MAX_DELAY = 0.04


class ServiceBill(Struct):
    """What the service wants to be paid."""

    money: int = 0
    tokens: int = 0
    calls: int = 0
    cut: int = 0
    refused: int = 0


class BillingServer:
    """Speaks just enough of OpenAI's chat dialect. Some answers break off, some requests are refused."""

    def __init__(self, seed: int) -> None:
        self.bill = ServiceBill()
        self.busy: dict[str, int] = {}
        """How many requests of each customer are under way."""
        self._luck = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._tasks = set["asyncio.Task[None]"]()

    @property
    def port(self) -> int:
        assert self._server
        return self._server.sockets[0].getsockname()[1]

    async def __aenter__(self) -> "BillingServer":
        self._server = await asyncio.start_server(self._serve_connection, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            # Whoever is killed breaks off; whoever is done closes.
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    await self._answer_request(await _read_request(reader), writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_request(self, request: tuple[str, bytes], writer: asyncio.StreamWriter) -> None:
        customer, body = request
        fate = self._luck.random()
        if fate < SHARE_BUSY:
            self.bill.refused += 1
            await _send_response(writer, 429, b'{"error":{"message":"slow down"}}', "Retry-After: 0\r\n")
            return
        most = json.loads(body).get("max_tokens") or 10_000
        usage = Usage(input=len(body) // BYTES_PER_TOKEN, output=self._luck.randint(1, most))
        # From here on it is charged: the model is at it.
        self.bill.calls += 1
        self.bill.money += usage.input * PRICE_IN + usage.output * PRICE_OUT
        self.bill.tokens += usage.input + usage.output
        self.busy[customer] = self.busy.get(customer, 0) + 1
        try:
            await asyncio.sleep(self._luck.uniform(0.001, MAX_DELAY))
            if fate > 1 - SHARE_CUT:
                self.bill.cut += 1
                raise ConnectionResetError
            await _send_response(writer, 200, _completion_body(usage))
        finally:
            self.busy[customer] -= 1


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Who asks, and the body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return fields.get("authorization", "").removeprefix("bearer "), await reader.readexactly(
        int(fields.get("content-length", "0"))
    )


async def _send_response(writer: asyncio.StreamWriter, status: int, body: bytes, more: str = "") -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


def _completion_body(usage: Usage) -> bytes:
    used = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Spent."}, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": used}).encode()
