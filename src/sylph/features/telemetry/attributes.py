"""What spans and metrics say, by the conventions for generative AI. Pure."""

import json
from collections.abc import Mapping

from sylph.core.facts.model import ModelFailed, ModelResponded
from sylph.core.facts.tool_call import ToolFinished

Attributes = dict[str, str | int | float | bool | tuple[str, ...]]
# How the conventions name services that we know by other names.
PROVIDER_NAMES: Mapping[str, str] = {
    "google": "gcp.gemini",
    "vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "azure": "azure.ai.openai",
}
FINISH_REASONS = {"calls": "tool_calls", "filtered": "content_filter"}


def agent_attributes(session: str, turn: str, version: str) -> Attributes:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sylph",
        "gen_ai.agent.version": version,
        "gen_ai.conversation.id": session,
        "sylph.turn": turn,
    }


def request_attributes(model: str) -> Attributes:
    """What spans and metrics of a model call have in common."""
    provider, _, name = model.partition("/")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER_NAMES.get(provider, provider),
        "gen_ai.request.model": name,
    }


def response_attributes(fact: ModelResponded) -> Attributes:
    usage = fact.usage
    told: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.response.finish_reasons": (FINISH_REASONS.get(fact.finish, fact.finish),),
        "sylph.role": fact.role,
        "sylph.first_ms": fact.first_ms,
    }
    if usage.cached:
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cached
    if usage.written:
        told["gen_ai.usage.cache_creation.input_tokens"] = usage.written
    if fact.cost is not None:
        told["sylph.cost.micro_dollars"] = fact.cost
    return told


def failure_attributes(fact: ModelFailed) -> Attributes:
    return {"error.type": fact.trouble.kind, "sylph.role": fact.role, "sylph.attempt": fact.attempt}


def tool_attributes(name: str, call: str) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.type": "function",
    }


def error_type(fact: ToolFinished) -> str:
    return "" if fact.ok else fact.trouble.kind if fact.trouble else "failed"


def message_json(role: str, text: str) -> str:
    """Content as the conventions have it: JSON in an attribute."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)
