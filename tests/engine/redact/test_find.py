"""What is taken for a secret, and what is not."""

import re
import secrets
import string
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import find as generated
from hypothesis.strategies import from_regex

from sylph.core.errors import UserError
from sylph.engine.redact import secret_finder
from sylph.engine.redact.patterns import KEYS, SecretPattern
from sylph.engine.redact.policy import RedactionPolicy
from sylph.engine.redact.secret_finder import SecretFinder

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklm"
BODY = "a8Xk2Lm9Qw7Zr4Tn6Vb1Yc3Hd5Jf0GsEpUiOaKq8Xk2Lm9Qw7Zr4Tn6Vb1Yc3Hd5Jf0"


def values(text: str, **terms: object) -> list[str]:
    finder = SecretFinder(RedactionPolicy(**terms))  # pyright: ignore[reportArgumentType]
    return [text[start:end] for start, end, _ in finder.find_secrets(text, {})]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('password = "hunter2"', "hunter2"),
        ("password: hunter2x", "hunter2x"),
        ("DB_PASSWORD=correcthorsebattery", "correcthorsebattery"),
        ('export API_TOKEN="9f8e7d6c5b4a"', "9f8e7d6c5b4a"),
        ("spring.datasource.password=S3cr3tValue", "S3cr3tValue"),
        ('{"token":"a8f5f167f44f4964e6c998dee827110c"}', "a8f5f167f44f4964e6c998dee827110c"),
        ('\\"password\\": \\"Abc123xyz\\"', "Abc123xyz"),
        ("postgres://app:S3cr3t!pw@db/x", "S3cr3t!pw"),
        ("Server=x;User Id=sa;Password=pa55word!;", "pa55word!"),
        ("amqp://u:p%40ss9word@mq:5672/", "p%40ss9word"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789"),
        ('"x-api-key": "abcdef0123456789"', "abcdef0123456789"),
        ("curl -u bob:Sup3rSecret http://x", "Sup3rSecret"),
        ("mysql --password=S3cret99 -u x", "S3cret99"),
        ("machine x login bob password S3cret99", "S3cret99"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzKEY"),
        ("AccountKey=" + "Ab3/" * 20 + "==;Endpoint", "Ab3/" * 20 + "=="),
        ("pay with 4111 1111 1111 1111 today", "4111 1111 1111 1111"),
        ("amex 378282246310005", "378282246310005"),
        (f"a {JWT} here", JWT),
        ('{"msg":"it was\\nsk-proj-abcDEF123456789012345678\\n"}', "sk-proj-abcDEF123456789012345678"),
        ('{"env":"A=1\\nDB_PASSWORD=hunter2x\\nB=2"}', "hunter2x"),
        ('{"log":"x\\ndb_password=hunter2x"}', "hunter2x"),
        ('{"log":"x\\npostgres://app:S3cr3t!pw@db/x"}', "S3cr3t!pw"),
        ("key sk-proj-abcDEF123456789012345678 here", "sk-proj-abcDEF123456789012345678"),
        ('A_PASSWORD="correct horse battery staple"', "correct horse battery staple"),
        ("export A_PASSWORD='correct horse battery staple'", "correct horse battery staple"),
        ('A_PASSWORD: "correct horse battery staple"', "correct horse battery staple"),
        ('SMTP_PASS="p@ss w0rd!"', "p@ss w0rd!"),
        ("SMTP_PASS=hunter2x", "hunter2x"),
        ("B_PASSWORD='it is a s3cret 9x'", "it is a s3cret 9x"),
        ('C_PASSWORD="it\'s a s3cret 9x"', "it's a s3cret 9x"),
        ('password: "two words77"', "two words77"),
        ('{"user": "x", "password": "json pass 55", "port": 1}', "json pass 55"),
        ('\\"password\\": \\"json pass 55\\"', "json pass 55"),
        ('db_password = "py pass 66"', "py pass 66"),
        ("tool --password 'two words77' x", "two words77"),
        ("mysql -u root -phunter2xyz", "hunter2xyz"),
        ("mysqldump -h db -pcorrecthorse app", "correcthorse"),
        ("mysql -p'Open Sesame 1' app", "Open Sesame 1"),
        ("sshpass -p 'Open Sesame 1' ssh x", "Open Sesame 1"),
        ('{"command":"sshpass -p \\"Open Sesame 1\\" ssh x"}', "Open Sesame 1"),
        ("sshpass -v -p hunter2xyz ssh x", "hunter2xyz"),
    ],
)  # fmt: skip
def test_a_secret_is_found_and_nothing_around_it(text: str, secret: str) -> None:
    assert values(text) == [secret]


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()", "password: str", 'token = request.headers["x"]', "token = token2",
        'api_key=os.environ["OPENAI_API_KEY"]', "PASSWORD=${DB_PASSWORD}", "PASSWORD=$DB_PASSWORD",
        '"js-tokens": "^4.0.0"',
        "max_tokens=4096", "token: string", "secretName: my-secret-v2", 'password = "changeme"',
        'password = "********"',
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 3f2a9c1b3f2a9c1b3f2a9c1b3f2a9c1b3f2a9c1b", "550e8400-e29b-41d4-a716-446655440000",
        '"integrity": "sha512-abcDEF123/+xyz=="', "def f(password=None, token=self.token):", 'if token == "abc":',
        '"password": "Please enter your password!"', '"password": "Passwort!"', "at 1700000000000 ms",
        "0.4111111111111111",
        "postgres://user:password@localhost/db", "http://localhost:8080/a@b", "git@github.com:foo/bar.git",
        "npm_config_cache=/root/.npm", "password_hash = sha256(x)", "Token: TokenKind::Ident2", 'Token: "#d8dee9"',
        'secret: "projects/123/secrets/foo"', "token_type: bearer", "sk-learn-something-very-long-name-here",
        "card 4111111111111112", "order 4111-1111-1111-1111-9", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "passphrase = _ffi.NULL",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
        'password = "Enter your password"', 'password: str = ""', '"password": "Passwort"', 'password="${DB_PASSWORD}"',
        '"password": "Mindestens 8 Zeichen"', '"password": "At least 8 characters"', '"password": "Mot de passe 2"',
        'PASSWORD="The password is wrong"', 'LABEL_PASSWORD="Enter your password"', 'PASSWORD="Forgot it?"',
        'password = "sha256 digest"', 'password: "{first} {second2}"', 'ask("password: ", name2, "other")',
        'say("password:" + word2 + " is")', 'x = "password=" if a1 else "b"', 'PASSWORD="$(cat file 2)"',
        '"token": "Base64 encoded 12"', "docker run mysql -p3306:3306", "cd mysql && mkdir -p/var/lib/one",
        "mysql --port 3306 -port", "mysql -p", "mysql -p app_database", 'mysql -p"$PASSWORD"',
        "sshpass -p $PASSWORD ssh x", "bypass: check-9x", "first_pass = render2x",
        "⟦secret:password:1f3a0c9d2e⟧", 'password="⟦secret:password:1f3a0c9d2e⟧"',
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize("pattern", KEYS, ids=lambda pattern: pattern.name)
def test_every_vendor_key_is_found_in_a_small_text_and_in_a_large_one(pattern: SecretPattern) -> None:
    match = example(pattern.regex)
    for text in (f"x = {match[0]}\n", "some words, and more of them\n" * 1000 + f"x = {match[0]}\n"):
        assert match[1] in values(text)


def example(regex: str) -> re.Match[str]:
    """A text that a vendor's pattern matches, with a body that looks random."""
    compiled = re.compile(regex, re.ASCII)

    def good(text: str) -> bool:
        varied = len(set(text[len(text) // 4 :])) >= 5 and any(map(str.isdigit, text)) and "xxxx" not in text
        return varied and text.isascii() and not text.endswith(("-", "_", ".", "\n"))

    quick = settings(database=None, derandomize=True, phases=[Phase.generate], max_examples=5000, deadline=None)
    found = compiled.fullmatch(generated(from_regex(compiled, fullmatch=True), good, settings=quick))
    assert found
    return found


def test_the_patterns_mean_the_same_to_both_ways_of_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(__file__).read_text()
    slow = values(text)
    monkeypatch.setattr(secret_finder, "MUCH", 0)
    fast = values(text)
    assert fast == slow != []


def test_without_re2_the_hints_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(secret_finder, "import_module", missing)
    assert values("words " * 10_000 + 'password = "hunter2"') == ["hunter2"]


def test_private_keys_are_found_line_by_line() -> None:
    body = ["".join(secrets.choice(string.ascii_letters + "0123456789+/") for _ in range(64)) for _ in range(5)] + [
        "Ab12cd=="
    ]
    key = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"])
    numbered = "\n".join(f"{number:6}\t{row}" for number, row in enumerate(key.split("\n"), 998))
    assert values(key) == values(numbered) == values(key.replace("\n", "\\n")) == body
    assert values("\n".join(key.split("\n")[:4])) == body[:3]
    assert values("\n".join(key.split("\n")[-4:])) == body[-3:]
    assert values('if "-----BEGIN PRIVATE KEY-----" in text: return "-----END PRIVATE KEY-----"') == []


def test_addresses_mail_and_entropy_are_opted_into() -> None:
    text = f"mail ann@example.org from 203.0.113.7 and 127.0.0.1, version 1.2.3.4567, {BODY[:40]}"
    assert values(text) == []
    assert values(text, email=True) == ["ann@example.org"]
    assert values(text, ip=True) == ["203.0.113.7"]
    assert values(text, entropy=True) == [BODY[:40]]
    assert values("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", entropy=True) == []
    assert values("2001:db8::8a2e:370:7334 at 12:30:45", ip=True) == ["2001:db8::8a2e:370:7334"]


def test_patterns_and_exceptions_of_the_users_own() -> None:
    assert values("badge EMP-123456", patterns={"badge": r"EMP-\d{6}"}) == ["EMP-123456"]
    assert values("ref: x-77 and x-78", patterns={"ref": r"x-(\d+)"}, allow=("78",)) == ["77"]
    assert values('password = "hunter2"', allow=("hunter[0-9]",)) == []
    for wrong in ("(", "x*"):
        with pytest.raises(UserError, match=r"regular expression|matches nothing"):
            values("text", patterns={"bad": wrong})


def test_of_two_that_overlap_the_longer_is_taken() -> None:
    text = "postgres://u:sk-proj-abcDEF123456789012345678@db/x"
    found = SecretFinder(RedactionPolicy()).find_secrets(text, {"abcDEF12345": "literal"})
    assert [text[start:end] for start, end, _ in found] == ["sk-proj-abcDEF123456789012345678"]


def test_a_short_value_counts_only_where_a_name_is_given_it() -> None:
    finder, known = SecretFinder(RedactionPolicy()), {"abc123": "password"}

    def seen(text: str) -> list[str]:
        return [text[start:end] for start, end, _ in finder.find_secrets(text, {}, known)]

    for text in ("['ADMIN_PASSWORD=abc123', 'B=2']", "f(password='abc123')", "{ADMIN_PASSWORD:abc123}", "(pwd=abc123)"):
        assert seen(text) == ["abc123"]
    for text in ("commit abc123", "['ADMIN_PASSWORD=abc1234']", "colour = abc123", "['abc123']"):
        assert seen(text) == []


def test_a_hostile_text_takes_no_time() -> None:
    # It ends: that is the test. Backtracking would take hours.
    for text in (
        "password" * 20_000,
        "a://" + "b:" * 50_000,
        "eyJ" + "a." * 50_000,
        'password="' * 20_000,
        "mysql -p " * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 2_000,
    ):
        values(text)
