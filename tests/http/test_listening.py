"""The sockets of the server."""

import asyncio
import socket

from tests.patience import PATIENCE

from sylph.interfaces.http.server.listen_socket import listen_tcp


async def test_small_answers_are_not_held_back() -> None:
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = listen_tcp("127.0.0.1", 0)
    async with await asyncio.start_server(answer, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        assert await asyncio.wait_for(told, PATIENCE) == 1
        writer.close()
        await writer.wait_closed()
