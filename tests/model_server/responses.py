"""Steps as OpenAI responses, each event by its name."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.chat import listing
from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut, event

REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
Events = list[dict[str, Any]]


class ResponsesDialect:
    media = "text/event-stream"
    keepalive = b": keep-alive\n\n"

    def __init__(self) -> None:
        self._count = 0

    def takes(self, path: str) -> bool:
        return path == "/v1/responses"

    def streams(self, asked: Asked) -> bool:
        return b'"stream":true' in asked.body or b'"stream": true' in asked.body

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        return {"/v1/models": listing(models)}

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        events, middle = self.events(step)
        return [event(each, each["type"]) for each in events], middle

    def events(self, step: Step, id: str = "resp_1") -> tuple[Events, int]:
        """All that is told, and after how many events trouble comes."""
        items = self._items(step)
        events: Events = [self._about("response.created", id, "in_progress", [])]
        events.append(self._about("response.in_progress", id, "in_progress", []))
        for at, item in enumerate(items):
            events += self._item(step, at, item)
        middle = len(events) // 2 + 1
        if step.error is not None:
            return [*events[:middle], self._trouble(step.error, id)], middle
        if step.done:
            events.append(self._end(step, id, items))
        for number, each in enumerate(events):
            each["sequence_number"] = number
        return events, middle

    def document(self, step: Step) -> bytes:
        end = self._end(step, "resp_1", self._items(step))
        return json.dumps(end["response"], ensure_ascii=False).encode()

    def _end(self, step: Step, id: str, items: Events) -> dict[str, Any]:
        reason = REASONS.get(step.finish or "")
        kind, status = ("response.incomplete", "incomplete") if reason else ("response.completed", "completed")
        end = self._about(kind, id, status, items)
        usage = step.usage or {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        end["response"] |= {"usage": usage, "incomplete_details": {"reason": reason} if reason else None}
        return end

    def _about(self, kind: str, id: str, status: str, output: Events) -> dict[str, Any]:
        response = {"id": id, "object": "response", "status": status, "error": None, "output": output}
        return {"type": kind, "response": response}

    def _trouble(self, error: Mapping[str, Any], id: str) -> dict[str, Any]:
        """A failed response; with `"event": "error"` in it the plain event."""
        told = {name: value for name, value in error.items() if name != "event"}
        if error.get("event") == "error":
            return {"type": "error", **told}
        failed = self._about("response.failed", id, "failed", [])
        failed["response"]["error"] = told
        return failed

    def _items(self, step: Step) -> Events:
        items: Events = []
        if step.reasoning or step.encrypted:
            summary = [{"type": "summary_text", "text": step.reasoning}] if step.reasoning else []
            items.append({"id": "rs_1", "type": "reasoning", "summary": summary})
            items[-1] |= {"encrypted_content": step.encrypted} if step.encrypted else {}
        if step.searched:
            action = {"type": "search", "query": "the news"}
            items.append({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": action})
        if step.text or step.refusal or not step.calls:
            text: dict[str, Any] = {"type": "output_text", "text": step.text, "annotations": []}
            part: dict[str, Any] = {"type": "refusal", "refusal": step.refusal} if step.refusal else text
            items.append(
                {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
            )
        for at, (name, arguments) in enumerate(step.calls):
            given = json.dumps(arguments, ensure_ascii=False)
            call = {"id": f"fc_{at}", "type": "function_call", "status": "completed", "arguments": given}
            items.append({**call, "call_id": f"call_{name}_{at}", "name": name})
        return items

    def _item(self, step: Step, at: int, item: dict[str, Any]) -> Events:
        opening: dict[str, Any] = {**item, "status": "in_progress"}
        kind, pieces = "", list[str]()
        match item["type"]:
            case "reasoning":
                kind, pieces = "response.reasoning_summary_text.delta", cut(step.reasoning, step.chunk)
                opening = {"id": item["id"], "type": "reasoning", "summary": []}
            case "message":
                kind = "response.refusal.delta" if step.refusal else "response.output_text.delta"
                pieces = cut(step.refusal or step.text, step.chunk)
                opening["content"] = []
            case "function_call":
                kind, pieces = "response.function_call_arguments.delta", cut(item["arguments"], step.chunk)
                opening["arguments"] = ""
            case _:
                kind, pieces = f"response.{item['type']}.searching", [""]
        where = {"output_index": at, "item_id": item["id"], "summary_index": 0, "content_index": 0}
        pieces = pieces if step.pieces else []
        told = [each for piece in pieces for each in (*[""] * step.empties, piece)]
        return [
            {"type": "response.output_item.added", "output_index": at, "item": opening},
            *({"type": kind, **where, "delta": piece} for piece in told),
            {"type": "response.output_item.done", "output_index": at, "item": item},
        ]
