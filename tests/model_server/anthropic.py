"""Steps as Anthropic messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.chat import listing
from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut, event

SEARCHED: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "sylph"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://a.example", "encrypted_content": "c2VjcmV0"}],
    },
]


class AnthropicDialect:
    media = "text/event-stream"
    keepalive = b'event: ping\ndata: {"type": "ping"}\n\n'

    def takes(self, path: str) -> bool:
        return path == "/v1/messages"

    def streams(self, asked: Asked) -> bool:
        return b'"stream":true' in asked.body

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        return {"/v1/models": listing(models)}

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        events: list[dict[str, Any]] = []
        for at, block in enumerate(self._blocks(step)):
            events += self._events(step, at, block)
        usage = {"input_tokens": 10, "output_tokens": 1, **(step.usage or {})}
        message: dict[str, Any] = {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}
        begin = {"type": "message_start", "message": message}
        frames = [_frame(begin), self.keepalive, *map(_frame, events)]
        middle = len(frames) // 2 + 1
        if step.error is not None:
            return [*frames[:middle], _frame({"type": "error", "error": step.error})], middle
        if finish := self._finish(step):
            last = {"output_tokens": 5, **(step.usage or {})}
            frames.append(_frame({"type": "message_delta", "delta": {"stop_reason": finish}, "usage": last}))
        return [*frames, _frame({"type": "message_stop"})] if step.done else frames, middle

    def document(self, step: Step) -> bytes:
        usage = {"input_tokens": 10, "output_tokens": 5, **(step.usage or {})}
        message = {"type": "message", "role": "assistant", "content": self._blocks(step)}
        return json.dumps({**message, "stop_reason": self._finish(step), "usage": usage}).encode()

    def _blocks(self, step: Step) -> list[dict[str, Any]]:
        """The whole blocks of the answer."""
        blocks: list[dict[str, Any]] = []
        if step.reasoning or step.encrypted:
            blocks.append({"type": "thinking", "thinking": step.reasoning, "signature": step.encrypted})
        blocks += SEARCHED if step.searched else []
        if text := step.refusal or step.text:
            blocks.append({"type": "text", "text": text})
        for at, (name, arguments) in enumerate(step.calls):
            identity = {"id": f"toolu_{name}_{at}"} if step.ids else {}
            blocks.append({"type": "tool_use", **identity, "name": name, "input": dict(arguments)})
        return blocks

    def _events(self, step: Step, at: int, block: dict[str, Any]) -> list[dict[str, Any]]:
        """How a block is told: empty at first, then piece by piece."""
        start, deltas = dict(block), list[dict[str, Any]]()
        for field, kind in (("text", "text_delta"), ("thinking", "thinking_delta"), ("signature", "signature_delta")):
            if field in block:
                deltas += [{"type": kind, field: piece} for piece in cut(block[field], step.chunk)]
                start[field] = ""
        if "input" in block and not step.objects:
            given = json.dumps(block["input"], ensure_ascii=False)
            deltas += [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in cut(given, step.chunk if step.pieces else len(given))
            ]
            start["input"] = {}
        empty = [{"type": "text_delta", "text": ""}] * step.empties if block["type"] == "text" else []
        told = [each for delta in deltas for each in (*empty, delta)]
        return [
            {"type": "content_block_start", "index": at, "content_block": start},
            *({"type": "content_block_delta", "index": at, "delta": delta} for delta in told),
            {"type": "content_block_stop", "index": at},
        ]

    def _finish(self, step: Step) -> str:
        if step.finish is not None:
            return step.finish
        return "tool_use" if step.calls else "refusal" if step.refusal else "end_turn"


def _frame(packet: Mapping[str, Any]) -> bytes:
    return event(packet, packet["type"])
