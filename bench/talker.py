"""A model that talks like a real one: a token at a time, each with the moment it was said.

python bench/talker.py TOKENS PER_SECOND
"""

import asyncio
import random
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
ERROR = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"
TOKEN = (
    b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":'
    b'{"content":"%d "},"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":200,"total_tokens":300}}\n\n'
    b"data: [DONE]\n\n"
)


def stamp() -> int:
    """Now, in steps of 10 µs: few enough digits to be taken for no secret, which would be kept and not shown."""
    return time.monotonic_ns() // 10_000 % 1_000_000


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: int, pace: float) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = head.partition(b"content-length:")[2].split(b"\r\n")[0].strip()
    if length:
        await reader.readexactly(int(length))
    if b"/chat/completions" not in head.split(b"\r\n")[0]:
        writer.write(ERROR)
        writer.close()
        return
    writer.write(HEAD)
    loop = asyncio.get_running_loop()
    # Not all in step: real ones are not, and it would measure how long fifty take instead of one.
    began = loop.time() + random.random() * pace
    for number in range(tokens):
        await asyncio.sleep(max(began + number * pace - loop.time(), 0))
        writer.write(TOKEN % stamp())
    writer.write(END)
    writer.close()


async def main(tokens: int, pace: float) -> None:
    server = await asyncio.start_server(lambda r, w: answer(r, w, tokens, pace), "127.0.0.1", 0, limit=2**22)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), 1 / float(sys.argv[2])))
