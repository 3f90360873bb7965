"""A model at full speed: it calls a tool until a conversation holds so many results, and then answers.

    python bench/model.py ROUNDS [TOOL ARGUMENTS]

It decides by the request alone, so that any number of conversations can be held at once.
"""

import asyncio
import json
import sys

import httptools

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
ERROR = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def _told(*choices: dict[str, object]) -> bytes:
    lines: list[dict[str, object]] = [
        {"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [each]} for each in choices
    ]
    lines.append({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE})
    body = b"".join(b"data: %s\n\n" % json.dumps(line).encode() for line in lines) + b"data: [DONE]\n\n"
    return HEAD % len(body) + body


def calling(number: int, tool: str, arguments: str) -> bytes:
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return _told(
        {"index": 0, "delta": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    )


ANSWER = _told(
    {"index": 0, "delta": {"role": "assistant", "content": "All of it "}, "finish_reason": None},
    {"index": 0, "delta": {"content": "is done."}, "finish_reason": None},
    {"index": 0, "delta": {}, "finish_reason": "stop"},
)


class Talk(asyncio.Protocol):
    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._parser, self._body, self._url = transport, httptools.HttpRequestParser(self), b"", b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        if self._url.endswith(b"/chat/completions"):
            done = self._body.count(b'"role":"tool"')
            self._transport.write(self._answers[min(done, len(self._answers) - 1)])
        else:
            self._transport.write(ERROR)
        self._body = b""


async def main(rounds: int, tool: str, arguments: str) -> None:
    answers = [*(calling(number, tool, arguments) for number in range(rounds)), ANSWER]
    server = await asyncio.get_running_loop().create_server(lambda: Talk(answers), "127.0.0.1", 0)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = sys.argv[2:] or ["read", '{"path":"notes.txt"}']
    asyncio.run(main(int(sys.argv[1]), *given))
