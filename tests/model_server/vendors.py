"""How each vendor says that a conversation is too long, and that one has to wait: status, code and words."""

from collections.abc import Mapping

from tests.model_server.script import Step, fail

OVERFLOWS = {
    "openai": (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    "vllm": (400, "BadRequestError", "This model's maximum context length is 4096 tokens. However, you requested 5000"),
    "vllm prompt": (400, "", "The decoder prompt (length 9000) is longer than the maximum model length of 4096."),
    "llama.cpp": (400, "exceed_context_size_error", "the request exceeds the available context size"),
    "llama.cpp old": (500, "", "context size exceeded"),
    "ollama": (400, "", "prompt too long; exceeded max context length by 12 tokens"),
    "ollama input": (400, "", "the input length exceeds the context length"),
    "lm studio": (400, "", "Trying to keep the first 9000 tokens when context the overflows."),
    "lm studio old": (400, "", "tokens to keep from the initial prompt is greater than the context length"),
    "anthropic": (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
    "anthropic answer": (
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    ),
    "google": (
        400,
        "400 INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed",
    ),
    "vertex": (
        400,
        "",
        "Unable to submit request because the input token count is 1200000 but model only supports up to",
    ),
    "bedrock": (400, "ValidationException", "Input is too long for requested model."),
    "bedrock nova": (400, "ValidationException", "Too many input tokens. Max input tokens: 300000"),
    "groq": (400, "", "Please reduce the length of the messages or completion."),
    "mistral": (400, "", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
    "xai": (400, "", "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    "moonshot": (400, "invalid_request_error", "Your request exceeded model token limit: 262144"),
    "minimax": (400, "", "invalid params, context window exceeds limit (2013)"),
    "deepseek": (400, "", "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens"),
    "qwen": (400, "InvalidParameter", "Range of input length should be [1, 129024]"),
    "together": (422, "", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193."),
    "cerebras": (400, "context_length_exceeded", "Please reduce the length of the messages or completion."),
    "openrouter": (400, "400", "This endpoint's maximum context length is 200000 tokens."),
    "copilot": (400, "", "prompt token count of 150000 exceeds the limit of 128000"),
    "too large": (413, "", "Request Entity Too Large"),
    "in a stream": (0, "400", "input exceeds the context window of this model"),
}

# How long to wait, wherever a vendor says it.
PAUSES: Mapping[str, tuple[dict[str, str], str, float | None]] = {
    "openai": ({"retry-after-ms": "20"}, "Rate limit reached. Please try again in 20ms.", 0.02),
    "openai words": ({}, "Rate limit reached for requests. Please try again in 1.5s.", 1.5),
    "anthropic": ({"retry-after": "1"}, "This request would exceed your rate limit.", 1.0),
    "openrouter": ({"x-ratelimit-reset": "2"}, "Rate limit exceeded: free-models-per-min.", 2.0),
    "groq": ({"retry-after": "2"}, "Rate limit reached. Please try again in 1.9s.", 2.0),
    "nobody": ({}, "Too Many Requests", None),
}


def overflow(vendor: str) -> Step:
    """What this vendor answers to a conversation that is too long."""
    status, code, message = OVERFLOWS[vendor]
    return fail(status or 400, message, code=code)


def pause(vendor: str) -> Step:
    """What this vendor answers to somebody who asks too often."""
    headers, message, _ = PAUSES[vendor]
    return fail(429, message, headers=headers, code="rate_limit_exceeded")
