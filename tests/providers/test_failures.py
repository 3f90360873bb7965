import pytest
from tests.model_server.vendors import OVERFLOWS

from sylph.providers.endpoint import Endpoint
from sylph.providers.vendor_errors import (
    VendorComplaint,
    classify_failure,
    error_from_response,
    parse_complaint,
    parse_retry_after,
)

HERE = Endpoint(name="here", base_url="http://here/v1")


@pytest.mark.parametrize("name", OVERFLOWS)
def test_an_overflow_is_known_in_every_vendors_words(name: str) -> None:
    status, code, message = OVERFLOWS[name]
    assert classify_failure(status, VendorComplaint(message, code)) == "overflow"


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
        (400, "invalid_request_error Output blocked by content filtering policy", "refusal"),
        (400, "data_inspection_failed Input data may contain inappropriate content.", "refusal"),
        (400, "Content Exists Risk", "refusal"),
        (400, "invalid_request_error Your credit balance is too low to access the Anthropic API.", "auth"),
        (400, "You have reached your specified API usage limits. You will regain access on 2026-12-01", "auth"),
        (400, "INVALID_ARGUMENT API_KEY_INVALID API key not valid. Please pass a valid API key.", "auth"),
        (400, "API key expired. Please renew the API key.", "auth"),
        (400, "ValidationException The provided model identifier is invalid.", "not_found"),
        (
            400,
            "ValidationException Invocation of model ID x with on-demand throughput isn\u2019t supported.",
            "not_found",
        ),
        (400, "The model `x` does not exist", "not_found"),
        (400, "ServiceQuotaExceededException You have exceeded the quota", "rate_limited"),
        (402, "billing_error", "auth"),
        (403, "permission_error Your API key does not have permission", "auth"),
        (404, "not_found_error model: claude-x", "not_found"),
        (404, "NOT_FOUND models/gemini-x is not found for API version v1beta", "not_found"),
        (424, "ModelErrorException", "server_error"),
        (429, "rate_limit_error This request would exceed your organization's rate limit", "rate_limited"),
        (429, "ThrottlingException Too many tokens, please wait before trying again.", "rate_limited"),
        (500, "api_error Internal server error", "server_error"),
        (503, "UNAVAILABLE The model is overloaded. Please try again later.", "overloaded"),
        (504, "DEADLINE_EXCEEDED", "timeout"),
        (529, "overloaded_error Overloaded", "overloaded"),
        (0, "overloaded_error Overloaded", "overloaded"),
        (0, "RESOURCE_EXHAUSTED Resource has been exhausted", "rate_limited"),
        (0, "UNAUTHENTICATED Request had invalid credentials", "auth"),
        (0, "throttlingException slow", "rate_limited"),
        (0, "validationException wrong", "bad_request"),
        (0, "authentication_error invalid x-api-key", "auth"),
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
    assert classify_failure(status, VendorComplaint(words)) == kind


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"m","type":"t","code":"c"}}', "m", "c t"),
        (b'{"error":{"message":"m","code":503}}', "m", "503"),
        (b'{"error":"m"}', "m", ""),
        (b'{"object":"error","message":"m","type":"t","code":400}', "m", "400 t"),
        (b'{"detail":"Not Found"}', "Not Found", ""),
        (b'{"type":"error","error":{"type":"not_found_error","message":"m"}}', "m", "not_found_error"),
        (b'[{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}]', "m", "404 NOT_FOUND"),
        (b'{"error":{"message":"m","details":[{"reason":"API_KEY_INVALID"}]}}', "m", "API_KEY_INVALID"),
        (b'{"error":{"message":"m","details":"odd"}}', "m", ""),
        (b'{"Message":"m","__type":"ThrottlingException"}', "m", "ThrottlingException"),
        (b"[]", "[]", ""),
        (b'{"detail":[{"loc":["body"]}]}', '[{"loc":["body"]}]', ""),
        (b'{"other":1}', '{"other":1}', ""),
        (b"<h1>Bad   Gateway</h1>\n", "<h1>Bad Gateway</h1>", ""),
        (b"", "", ""),
    ],
)
def test_a_complaint_is_found_in_every_wrapping(body: bytes, message: str, code: str) -> None:
    assert parse_complaint(body) == VendorComplaint(message, code)


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
    assert parse_retry_after(headers, now=1445412480.0) == seconds


def test_the_wait_may_stand_in_the_words_themselves() -> None:
    body = b'{"error":{"code":429,"message":"You exceeded your current quota","details":[{"retryDelay":"3s"}]}}'
    error = error_from_response(HERE, "", body, status=429)
    assert (error.failure, error.retry_after) == ("rate_limited", 3.0)
    assert error_from_response(HERE, "", body, status=429, headers={"retry-after": "9"}).retry_after == 9.0


def test_amazon_names_the_trouble_in_a_header() -> None:
    headers = {"x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/"}
    assert error_from_response(HERE, "", b'{"message":"slow"}', status=400, headers=headers).failure == "rate_limited"


def test_a_model_that_is_not_there_leads_to_the_list_of_those_that_are() -> None:
    error = error_from_response(HERE, "llama9", b'{"error":"model not found"}', status=404)
    assert str(error) == "here does not know llama9: model not found"
    assert error.trouble.next == ("`sylph models` lists what there is.", "Is the base URL right? It is http://here/v1.")


def test_an_error_without_words_is_a_sentence_still() -> None:
    assert str(error_from_response(HERE, "", b"", status=500)) == "here failed."


def test_a_missing_key_is_named_by_the_service_where_no_variable_is_known() -> None:
    assert error_from_response(HERE, "", b"", status=401).trouble.next == (
        "Set the key of here to a key that is valid.",
    )


def test_an_address_without_a_model_service_is_told_as_that() -> None:
    for model, body in (("", b'{"error":"nothing here"}'), ("m", b"<!DOCTYPE html><p>Welcome")):
        error = error_from_response(HERE, model, body, status=404)
        assert "There is no model service of this kind at" in str(error)
        assert "sylph doctor" in error.trouble.next


def test_a_payment_is_not_about_the_key() -> None:
    error = error_from_response(HERE, "m", b'{"error":"pay first"}', status=402)
    assert str(error) == "here wants credit first: pay first"
    assert "Add credit" in error.trouble.next[0]
