"""Steps as OpenAI chat completions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut, event


class ChatDialect:
    """Steps as OpenAI chat completions."""

    media = "text/event-stream"
    keepalive = b": keep-alive\n\n"

    def takes(self, path: str) -> bool:
        return path == "/v1/chat/completions"

    def streams(self, asked: Asked) -> bool:
        # Looked for, not parsed: benches send long bodies, and we must not be what they measure.
        return b'"stream":true' in asked.body or b'"stream": true' in asked.body

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        """Documents that can be got beside completions."""
        return {"/v1/models": listing(models)}

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        """The events of a stream, and how many of them come before its trouble: half of what it says."""
        events = [{"role": "assistant", "content": ""}, *self._deltas(step)]
        frames = [event(_packet(delta=delta)) for delta in events]
        middle = len(frames) // 2 + 1
        if step.error is not None:
            return [*frames[:middle], event({"error": step.error})], middle
        if finish := self._finish(step):
            frames.append(event(_packet(delta={}, finish_reason=finish)))
        if finish or step.done:
            frames.append(event({**_packet(), "usage": self._usage(step)}))
        return [*frames, b"data: [DONE]\n\n"] if step.done else frames, middle

    def document(self, step: Step) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        if step.reasoning:
            message["reasoning_content"] = step.reasoning
        if step.calls:
            message["tool_calls"] = [self._call(step, at) for at in range(len(step.calls))]
        packet = _packet(message=message, finish_reason=self._finish(step))
        return json.dumps({**packet, "object": "chat.completion", "usage": self._usage(step)}).encode()

    def _deltas(self, step: Step) -> list[dict[str, Any]]:
        deltas = [{"reasoning_content": piece} for piece in cut(step.reasoning, step.chunk)]
        deltas += [{"content": piece} for piece in cut(step.text, step.chunk)]
        for at in range(len(step.calls)):
            deltas += self._call_deltas(step, at)
        return [each for delta in deltas for each in (*[{"content": ""}] * step.empties, delta)]

    def _call_deltas(self, step: Step, at: int) -> list[dict[str, Any]]:
        whole = self._call(step, at)
        function = whole["function"]
        if step.legacy:
            return [{"function_call": {"name": function["name"], "arguments": ""}}] + [
                {"function_call": {"arguments": piece}} for piece in cut(function["arguments"], step.chunk)
            ]
        if step.objects or not step.pieces:
            return [{"tool_calls": [whole]}]
        place = {"index": at} if step.indexes else {}
        opening = {**whole, "function": {"name": function["name"], "arguments": ""}}
        pieces = [{**place, "function": {"arguments": piece}} for piece in cut(function["arguments"], step.chunk)]
        return [{"tool_calls": [piece]} for piece in (opening, *pieces)]

    def _call(self, step: Step, at: int) -> dict[str, Any]:
        name, arguments = step.calls[at]
        given = dict(arguments) if step.objects else json.dumps(arguments, ensure_ascii=False)
        place = {"index": at} if step.indexes else {}
        identity = {"id": f"call_{name}_{at}"} if step.ids else {}
        return {**place, **identity, "type": "function", "function": {"name": name, "arguments": given}}

    def _finish(self, step: Step) -> str:
        if step.finish is not None:
            return step.finish
        return "tool_calls" if step.calls else "stop"

    def _usage(self, step: Step) -> Mapping[str, Any]:
        if step.usage is not None:
            return step.usage
        return {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _packet(**choice: Any) -> dict[str, Any]:
    choices = [{"index": 0, "finish_reason": None, **choice}] if choice else []
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": choices,
    }


def listing(models: Sequence[str | Mapping[str, Any]]) -> str:
    data = [{"id": model, "object": "model"} if isinstance(model, str) else dict(model) for model in models]
    return json.dumps({"object": "list", "data": data})
