"""Steps as the events of a Bedrock Converse stream, in Amazon's binary framing."""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server.script import Asked, Step
from tests.model_server.wire import cut


class BedrockDialect:
    media = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self.keepalive = frame("ping", {})

    def takes(self, path: str) -> bool:
        return path.startswith("/model/") and path.endswith("/converse-stream")

    def streams(self, asked: Asked) -> bool:  # noqa: ARG002 - there is no other way
        return True

    def pages(self, models: Sequence[str | Mapping[str, Any]]) -> Mapping[str, str]:
        listed = [{"modelId": model} if isinstance(model, str) else dict(model) for model in models]
        profiles = [each for each in listed if "inferenceProfileId" in each]
        plain = [each for each in listed if "modelId" in each]
        return {
            "/foundation-models": json.dumps({"modelSummaries": plain}),
            "/inference-profiles": json.dumps({"inferenceProfileSummaries": profiles}),
        }

    def frames(self, step: Step) -> tuple[list[bytes], int]:
        frames = [frame("messageStart", {"role": "assistant", "p": "abcd"})]
        for at, deltas in enumerate(self._blocks(step)):
            frames += [self._block(at, delta) for delta in deltas]
            frames.append(frame("contentBlockStop", {"contentBlockIndex": at}))
        middle = len(frames) // 2 + 1
        if step.error is not None:
            kind = str(step.error.get("type", "internalServerException"))
            return [*frames[:middle], frame(kind, {"message": step.error.get("message")}, "exception")], middle
        if finish := self._finish(step):
            frames.append(frame("messageStop", {"stopReason": finish}))
        if step.done:
            usage = step.usage or {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
            frames.append(frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
        return frames, middle

    def document(self, step: Step) -> bytes:
        return json.dumps({"message": step.text}).encode()

    def _block(self, at: int, delta: dict[str, Any]) -> bytes:
        kind = "contentBlockStart" if "start" in delta else "contentBlockDelta"
        told = delta if "start" in delta else {"delta": delta}
        return frame(kind, {"contentBlockIndex": at, **told})

    def _blocks(self, step: Step) -> list[list[dict[str, Any]]]:
        blocks: list[list[dict[str, Any]]] = []
        if step.reasoning or step.encrypted:
            thought = [{"reasoningContent": {"text": piece}} for piece in cut(step.reasoning, step.chunk)]
            signed = [{"reasoningContent": {"signature": step.encrypted}}] if step.encrypted else []
            blocks.append([*thought, *signed])
        if text := step.refusal or step.text:
            pieces = [{"text": piece} for piece in cut(text, step.chunk)]
            blocks.append([each for piece in pieces for each in (*[{"text": ""}] * step.empties, piece)])
        for at, (name, arguments) in enumerate(step.calls):
            start = {"start": {"toolUse": {"toolUseId": f"tooluse_{name}_{at}", "name": name}}}
            given = cut(json.dumps(arguments, ensure_ascii=False), step.chunk)
            blocks.append([start, *({"toolUse": {"input": piece}} for piece in given)])
        return blocks

    def _finish(self, step: Step) -> str:
        if step.finish is not None:
            return step.finish
        return "tool_use" if step.calls else "content_filtered" if step.refusal else "end_turn"


def frame(kind: str, payload: Mapping[str, Any], message: str = "event") -> bytes:
    """One message as Amazon frames it: lengths, headers, payload, and two checksums."""
    told = {":message-type": message, f":{message}-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in told.items()
    )
    body = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return begun + struct.pack(">I", zlib.crc32(begun))
