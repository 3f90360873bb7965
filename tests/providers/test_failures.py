import pytest

from sylph.providers.endpoint import Endpoint
from sylph.providers.failures import Complaint, complaint, failure, kind_of, wait

HERE = Endpoint(name="here", base_url="http://here/v1")

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
    "too large": (413, "", "Request Entity Too Large"),
    "in a stream": (0, "400", "input exceeds the context window of this model"),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_an_overflow_is_known_in_every_vendors_words(name: str) -> None:
    status, code, message = OVERFLOWS[name]
    assert kind_of(status, Complaint(message, code)) == "overflow"


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "missing field", "bad_request"),
        (400, "content_filter triggered", "refusal"),
        (401, "", "auth"),
        (402, "Insufficient Balance", "auth"),
        (403, "", "auth"),
        (404, "model not found", "not_found"),
        (408, "", "timeout"),
        (409, "", "bad_request"),
        (422, "", "bad_request"),
        (429, "Rate limit reached", "rate_limited"),
        (429, "You exceeded your current quota", "auth"),
        (500, "", "server_error"),
        (502, "", "server_error"),
        (503, "", "overloaded"),
        (504, "", "timeout"),
        (529, "", "overloaded"),
        (0, "rate_limit_error", "rate_limited"),
        (0, "something else", "server_error"),
    ],
)
def test_every_status_has_a_kind(status: int, words: str, kind: str) -> None:
    assert kind_of(status, Complaint(words)) == kind


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"m","type":"t","code":"c"}}', "m", "c t"),
        (b'{"error":{"message":"m","code":503}}', "m", "503"),
        (b'{"error":"m"}', "m", ""),
        (b'{"object":"error","message":"m","type":"t","code":400}', "m", "400 t"),
        (b'{"detail":"Not Found"}', "Not Found", ""),
        (b'{"detail":[{"loc":["body"]}]}', '[{"loc":["body"]}]', ""),
        (b'{"other":1}', '{"other":1}', ""),
        (b"<h1>Bad   Gateway</h1>\n", "<h1>Bad Gateway</h1>", ""),
        (b"", "", ""),
    ],
)
def test_a_complaint_is_found_in_every_wrapping(body: bytes, message: str, code: str) -> None:
    assert complaint(body) == Complaint(message, code)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"x-ratelimit-reset": "1445412490"}, 10.0),
        ({"x-ratelimit-reset": "1445412490000"}, 10.0),
        ({"x-ratelimit-reset": "1m30s"}, 90.0),
        ({"x-ratelimit-reset": "250ms"}, 0.25),
    ],
)
def test_the_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert wait(headers, now=1445412480.0) == seconds


def test_a_model_that_is_not_there_leads_to_the_list_of_those_that_are() -> None:
    error = failure(HERE, "llama9", b'{"error":"model not found"}', status=404)
    assert str(error) == "here does not know llama9: model not found"
    assert error.trouble.next == ("`sylph models` lists what there is.", "Is the base URL right? It is http://here/v1.")


def test_an_error_without_words_is_a_sentence_still() -> None:
    assert str(failure(HERE, "", b"", status=500)) == "here failed."


def test_a_missing_key_is_named_by_the_service_where_no_variable_is_known() -> None:
    assert failure(HERE, "", b"", status=401).trouble.next == ("Set the key of here to a key that is valid.",)
