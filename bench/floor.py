"""The floor: the same requests, the same tool, raw asyncio; no log, no policy, no schema, nothing kept.

python bench/floor.py BASE_URL
"""

import asyncio
import json
import sys
from urllib.parse import urlsplit


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, messages: list[object]
) -> tuple[str, str, str]:
    body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    await reader.readuntil(b"\r\n\r\n")
    text, name, arguments = "", "", ""
    while size := int(await reader.readline(), 16):
        chunk = (await reader.readexactly(size + 2))[:-2]
        for line in chunk.split(b"\n"):
            if not line.startswith(b"data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                delta = choice["delta"]
                text += delta.get("content") or ""
                for call in delta.get("tool_calls") or ():
                    name += call["function"].get("name") or ""
                    arguments += call["function"].get("arguments") or ""
    await reader.readline()
    return text, name, arguments


async def shell(arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        json.loads(arguments)["command"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    out, _ = await process.communicate()
    return f"{out.decode()}[exit {process.returncode}]"


async def main() -> None:
    address = urlsplit(sys.argv[1])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    messages: list[object] = [{"role": "user", "content": "go"}]
    while True:
        text, name, arguments = await ask(reader, writer, address.netloc, messages)
        if not name:
            sys.stdout.write(text + "\n")
            break
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        messages.append({"role": "assistant", "content": text, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "c", "content": await shell(arguments)})
    writer.close()


asyncio.run(main())
