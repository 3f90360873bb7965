"""Signatures against the vectors that Amazon has published."""

import calendar
import hashlib
import hmac

import pytest

from sylph.providers.dialects.bedrock.sigv4 import AwsKeys, SignatureScope, parse_aws_keys, sign_request

KEYS = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
NOW = calendar.timegm((2015, 8, 30, 12, 36, 0))
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}


HOST = "https://example.amazonaws.com/"
VECTORS: dict[str, tuple[str, str, dict[str, str], str]] = {
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31": ("GET", HOST, {}, "service"),
    "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b": ("POST", HOST, {}, "service"),
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500": (
        *("GET", f"{HOST}?Param2=value2&Param1=value1", {}, "service"),
    ),
    "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7": (
        *("GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", FORM, "iam"),
    ),
}


@pytest.mark.parametrize("signature", VECTORS, ids=["get-vanilla", "post-vanilla", "query-order", "list-users"])
def test_published_vectors_come_out(signature: str) -> None:
    method, url, headers, service = VECTORS[signature]
    signed = sign_request(method, url, b"", headers, KEYS, SignatureScope("us-east-1", service, NOW))
    assert signed["X-Amz-Date"] == "20150830T123600Z"
    assert signed["Authorization"].endswith(f"Signature={signature}")


def test_a_session_token_and_an_encoded_path_are_signed_as_the_rules_say() -> None:
    """Held against the rules, written out step by step."""
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-v1%3A0/converse-stream"
    keys = AwsKeys("AKIDEXAMPLE", "secret", "token")
    headers = {"Content-Type": "application/json"}
    signed = sign_request("POST", url, b'{"a":1}', headers, keys, SignatureScope("eu-west-1", "bedrock", NOW))
    canonical = (
        "POST\n/model/anthropic.claude-v1%253A0/converse-stream\n\n"
        "content-type:application/json\nhost:bedrock-runtime.eu-west-1.amazonaws.com\n"
        "x-amz-date:20150830T123600Z\nx-amz-security-token:token\n\n"
        "content-type;host;x-amz-date;x-amz-security-token\n" + hashlib.sha256(b'{"a":1}').hexdigest()
    )
    told = (
        "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/eu-west-1/bedrock/aws4_request\n"
        + hashlib.sha256(canonical.encode()).hexdigest()
    )
    key = b"AWS4secret"
    for part in (b"20150830", b"eu-west-1", b"bedrock", b"aws4_request"):
        key = hmac.new(key, part, "sha256").digest()
    assert signed == {
        "Content-Type": "application/json",
        "X-Amz-Date": "20150830T123600Z",
        "X-Amz-Security-Token": "token",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
        f"Signature={hmac.new(key, told.encode(), 'sha256').hexdigest()}",
    }


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("AKIAIOSFODNN7EXAMPLE:se/cret", AwsKeys("AKIAIOSFODNN7EXAMPLE", "se/cret")),
        ("ASIAIOSFODNN7EXAMPLE:se/cret:to:ken", AwsKeys("ASIAIOSFODNN7EXAMPLE", "se/cret", "to:ken")),
        ("ABSKQmVkcm9ja0FQSUtleS1leGFtcGxl", None),
        ("bedrock-api-key-YmVk:x", None),
        ("AKIAIOSFODNN7EXAMPLE:", None),
        ("", None),
    ],
)
def test_a_pair_of_keys_is_told_from_a_bearer_token(key: str, keys: AwsKeys | None) -> None:
    assert parse_aws_keys(key) == keys
