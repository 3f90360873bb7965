"""Steps as Ollama tells them: one JSON object on each line."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut


class OllamaDialect:
    media = "application/x-ndjson"
    keepalive = b"\n"

    def takes(self, path: str) -> bool:
        return path == "/api/chat"

    def streams(self, asked: Asked) -> bool:
        return b'"stream":false' not in asked.body

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        """Its lists. All models are shown with the details of the first that has any."""
        told = [{"model": model} if isinstance(model, str) else dict(model) for model in models]
        listed = [{"name": each["model"], "model": each["model"]} for each in told]
        details = next((each["show"] for each in told if "show" in each), SHOWN)
        return {"/api/tags": json.dumps({"models": listed}), "/api/show": json.dumps(details)}

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        messages: list[dict[str, Any]] = [{"thinking": piece} for piece in cut(step.reasoning, step.chunk)]
        messages += [{"content": piece} for piece in cut(step.text, step.chunk)]
        messages += [{"content": "", "tool_calls": [_call(name, given)]} for name, given in step.calls]
        messages = [each for message in messages for each in (*[{"content": ""}] * step.empties, message)]
        frames = [_line({"message": {"role": "assistant", "content": "", **message}}) for message in messages]
        middle = len(frames) // 2 + 1
        if step.error is not None:
            return [*frames[:middle], _line(dict(step.error))], middle
        return [*frames, self._end(step)] if step.done else frames, middle

    def document(self, step: Step) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": step.text, "thinking": step.reasoning}
        message["tool_calls"] = [_call(name, given) for name, given in step.calls]
        return json.dumps({**json.loads(self._end(step)), "message": message}).encode()

    def _end(self, step: Step) -> bytes:
        usage = step.usage or {"prompt_eval_count": 10, "eval_count": 5}
        reason = "load" if step.loading else step.finish or "stop"
        return _line({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason, **usage})


SHOWN = {
    "capabilities": ["completion", "tools"],
    "model_info": {"general.architecture": "scripted", "scripted.context_length": 40960},
}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


def _line(packet: dict[str, Any]) -> bytes:
    told = {"model": "scripted", "created_at": "2026-01-01T00:00:00Z", "done": False, **packet}
    return json.dumps(told if "error" not in packet else packet, ensure_ascii=False).encode() + b"\n"
