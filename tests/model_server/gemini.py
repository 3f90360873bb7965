"""Steps as answers of Google's Gemini API."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut, event


class GeminiDialect:
    media = "text/event-stream"
    keepalive = b": keep-alive\r\n\r\n"

    def takes(self, path: str) -> bool:
        return path.endswith(":streamGenerateContent")

    def streams(self, asked: Asked) -> bool:
        return asked.path.endswith("?alt=sse")

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        listed = [{"name": f"models/{model}"} if isinstance(model, str) else dict(model) for model in models]
        page = json.dumps({"models": listed})
        return {
            "/v1beta/models": page,
            "/v1beta1/publishers/google/models": page.replace('"models"', '"publisherModels"'),
        }

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        packets = [_packet([part]) for part in self._parts(step)]
        frames = [event(packet) for packet in packets]
        middle = len(frames) // 2 + 1
        if step.error is not None:
            return [*frames[:middle], event({"error": step.error})], middle
        last: dict[str, Any] = {"usageMetadata": self._usage(step)} if step.done else {}
        finish = "STOP" if step.finish is None else step.finish
        signed = step.encrypted and not step.calls
        parts = [{"text": "", "thoughtSignature": step.encrypted}] if signed else []
        return [*frames, event({**_packet(parts, finish), **last})], middle

    def document(self, step: Step) -> bytes:
        """Without `alt=sse` the API sends a list of packets."""
        packets = [_packet([part]) for part in self._parts(step)]
        return json.dumps([*packets, {**_packet([], "STOP"), "usageMetadata": self._usage(step)}]).encode()

    def _parts(self, step: Step) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in cut(step.reasoning, step.chunk)]
        if step.searched:
            parts.append({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["sylph"]}, "id": "s1"}})
            parts.append({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "s1"}})
        for piece in cut(step.refusal or step.text, step.chunk):
            parts += [{"text": ""}] * step.empties + [{"text": piece}]
        for at, (name, arguments) in enumerate(step.calls):
            identity = {"id": f"fc_{name}_{at}"} if step.ids else {}
            signature = {"thoughtSignature": step.encrypted} if step.encrypted and not at else {}
            parts.append({"functionCall": {"name": name, "args": dict(arguments), **identity}, **signature})
        return parts

    def _usage(self, step: Step) -> Mapping[str, Any]:
        return step.usage or {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


def _packet(parts: Sequence[Mapping[str, Any]], finish: str = "") -> dict[str, Any]:
    end = {"finishReason": finish} if finish else {}
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0, **end}],
        "modelVersion": "scripted",
    }
