"""What secrets look like: the one table of patterns.

Each is written so that both `re` and RE2 read it the same way. The secret is its first group, or all of it. `hints` are
texts of which one must be there before it is worth looking, in small letters where case does not matter;
`check` has the last word.
"""

from collections.abc import Callable

from msgspec import Struct

from sylph.engine.redact import secret_likelihood

ValueCheck = Callable[[str], bool]


class SecretPattern(Struct, frozen=True):
    name: str
    regex: str
    hints: tuple[str, ...]
    check: ValueCheck = secret_likelihood.accept_any


def _key_pattern(
    name: str, regex: str, *hints: str, check: ValueCheck = secret_likelihood.looks_like_key
) -> SecretPattern:
    """A key that its vendor marks: at the beginning of a word, and to its end."""
    return SecretPattern(name, rf"{_EDGE}({regex})", hints, check)


# The beginning of a word; a quoted line break before it is no part of it.
_EDGE = r"(?:\b|\\[nrt])"
# One word that says that a value is secret, at the end of a name.
_NAMED = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|credential|api[_-]?key|apikey|access[_-]?key(?:[_-]id)?"
    r"|auth[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|master[_-]?key|secret[_-]?key"
    r"|(?-i:_PASS)|(?:db|user|admin|root|smtp|mail|ftp|ssh)_pass)"
)
_KEYS = ("api", "access", "auth", "private", "signing", "encryption", "account", "master", "secret")
_NAMES = (
    *("passw", "passphrase", "pwd", "_pass", "secret", "token", "credential"),
    *(f"{word}{dash}key" for word in _KEYS for dash in ("", "_", "-")),
)
# A name in capitals that says so, a name of a password, and `-p` with the program before it.
_VARIABLE = (
    r"[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|CREDENTIAL)"
)
_PASSWORD = r"(?:passw(?:or)?d|passphrase|pwd|(?-i:_PASS)|(?:db|user|admin|root|smtp|mail|ftp|ssh)_pass)"
_FLAG = (
    r"\b(?:sshpass(?:[ \t]+-[a-z]+){0,3}[ \t]+-p[ \t]*|(?:mysql|mariadb)[a-z-]{0,20}[ \t](?:[^\r\n|;&]{0,200}[ \t])?-p)"
)
_PROGRAMS = ("sshpass", "mysql", "mariadb")
# A letter of a value that stands without quotes, in a line of its own and among others.
_LINE = r"""[^\s"'`<>(){}\[\],;\\]"""
_LETTER = r"""[^\s"'`$<>(){}\[\],;&|\\]"""

# What stands between a name and its value, up to the quote.
_IS = r"""[0-9]?\\?["']?\]?[ \t]*(?:=>|:=|[:=])[ \t]*[rbu]?"""
ASSIGNMENT_BEFORE = rf"""(?i){_NAMED}{_IS}\\?["']?$"""


def _phrase_patterns(before: str, hints: tuple[str, ...], check: ValueCheck) -> tuple[SecretPattern, ...]:
    """Values of several words, in either kind of quotes. What begins or ends as code does stands outside."""
    first, last = r"""[^\s"'\\`,;:+().\[\]{}<>|=-]""", r"""\s\\,;(\[{+=<"""
    return tuple(
        SecretPattern(
            "password", rf"""{before}\\?{mark}({first}[^{mark}\\\r\n]{{4,118}}[^{mark}{last}])\\?{mark}""", hints, check
        )
        for mark in "\"'"
    )


ASSIGNED = (
    # "name": "value", name = 'value', name := "value", name => "value"; also inside of a text that is itself quoted.
    SecretPattern(
        "password",
        rf"""(?i){_NAMED}{_IS}\\?["']([^"'\\\s]{{6,200}})\\?["']""",
        _NAMES,
        secret_likelihood.is_quoted_secret,
    ),
    # NAME=value and name: value, alone on their line, as in .env, .properties and YAML files.
    SecretPattern(
        "password",
        rf"""(?im)(?:^|[\s+>|:-]|\\[nrt])[A-Z0-9_.-]*{_NAMED}[0-9]?(?:=|:[ \t]+)({_LINE}{{6,200}})(?:\s|$|["'\\])""",
        _NAMES,
        secret_likelihood.is_bare_secret,
    ),
    SecretPattern(
        "password",
        rf"""(?im)^[ \t+>|-]*[A-Z0-9_.-]*{_NAMED}[ \t]+[=:][ \t]+({_LINE}{{6,200}})[ \t]*$""",
        _NAMES,
        secret_likelihood.is_spaced_secret,
    ),
    # NAME=value in capitals is a variable wherever it stands.
    SecretPattern(
        "password", rf"""{_EDGE}{_VARIABLE}=({_LINE}{{8,200}})""", _NAMES, secret_likelihood.is_variable_secret
    ),
    # Several words in quotes: NAME="…" in capitals, and whatever is called a password.
    *_phrase_patterns(rf"""{_EDGE}{_VARIABLE}[0-9]?\\?["']?(?:=|:[ \t]+)""", _NAMES, secret_likelihood.is_passphrase),
    *_phrase_patterns(rf"""(?i){_PASSWORD}{_IS}""", _NAMES, secret_likelihood.is_password_phrase),
    *_phrase_patterns(
        r"""(?i)(?:^|\s)--?(?:password|passwd|passphrase)[= ]""", _NAMES, secret_likelihood.is_password_phrase
    ),
    # `-p` of programs with which it is the password.
    SecretPattern("password", rf"""{_FLAG}["']?({_LETTER}{{5,200}})""", _PROGRAMS, secret_likelihood.is_flag_password),
    *_phrase_patterns(_FLAG, _PROGRAMS, secret_likelihood.is_flag_password),
    # Key=value; of connection strings, and fields of forms and queries.
    SecretPattern(
        "password",
        rf"""(?i)(?:^|[;&?,\s"']){_NAMED}=({_LETTER}{{6,200}})[;&]""",
        _NAMES,
        secret_likelihood.is_bare_secret,
    ),
    SecretPattern(
        "password",
        rf"""(?i)(?:^|\s)--?(?:password|passwd|passphrase|token|api-?key|secret)[= ]["']?({_LETTER}{{6,200}})""",
        _NAMES,
        secret_likelihood.is_quoted_secret,
    ),
    SecretPattern(
        "authorization",
        r"""(?i)\bauthorization\\?["']?\]?\s*[:=,]\s*[bf]?\\?["']?(?:bearer|basic|token|apikey)\s+([A-Za-z0-9+/_.~=-]{8,4000})""",
        ("authorization",),
        secret_likelihood.is_quoted_secret,
    ),
    SecretPattern(
        "authorization",
        r"""(?i)\bx-(?:api-key|auth-token|access-token|goog-api-key)\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9+/_.~=-]{8,4000})""",
        ("x-api-key", "x-auth-token", "x-access-token", "x-goog-api-key"),
        secret_likelihood.is_quoted_secret,
    ),
    SecretPattern(
        "login",
        r"""(?:^|\s)(?:-u|--user)[= ]?["']?[\w.@-]+:([^\s"'`$<>(){}\[\]\\]{6,200})""",
        ("-u", "--user"),
        secret_likelihood.is_quoted_secret,
    ),
    # In a .netrc and in curl's own file.
    SecretPattern(
        "login",
        r"""(?i)\blogin\s+\S+\s+password\s+([^\s"'`$<>{}\\]{6,200})""",
        ("password",),
        secret_likelihood.is_quoted_secret,
    ),
)

URLS = (
    SecretPattern(
        "url-password",
        r"""(?:\b|\\[nrt])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@"'<>\\`]{0,200}:([^\s/@"'<>\\`]{3,200})@""",
        ("://",),
        secret_likelihood.is_url_password,
    ),
    SecretPattern(
        "webhook", r"\bhooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9_/]{20,100})", ("hooks.slack.com",)
    ),
    SecretPattern(
        "webhook", r"\bdiscord(?:app)?\.com/api/webhooks/([0-9]{15,21}/[A-Za-z0-9_-]{40,100})", ("/api/webhooks/",)
    ),
    SecretPattern(
        "signature",
        r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=([A-Za-z0-9%+/=_-]{20,512})",
        ("sig",),
        secret_likelihood.looks_like_key,
    ),
)

_GITLAB = tuple(f"gl{kind}-" for kind in ("pat", "ptt", "dt", "rt", "cbt", "soat", "ft", "agent", "imt", "oas"))

KEYS = (
    _key_pattern("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{16,200}", "sk-ant-"),
    _key_pattern("openrouter-key", r"sk-or-[A-Za-z0-9_-]{16,200}", "sk-or-"),
    _key_pattern("openai-key", r"sk-[A-Za-z0-9_-]{20,250}", "sk-", check=secret_likelihood.looks_like_token),
    _key_pattern("groq-key", r"gsk_[A-Za-z0-9]{20,120}", "gsk_"),
    _key_pattern("xai-key", r"xai-[A-Za-z0-9]{20,120}", "xai-"),
    _key_pattern("cerebras-key", r"csk-[A-Za-z0-9]{20,120}", "csk-"),
    _key_pattern("together-key", r"tgp_v1_[A-Za-z0-9_-]{20,120}", "tgp_v1_"),
    _key_pattern("fireworks-key", r"fw_[A-Za-z0-9]{20,64}", "fw_", check=secret_likelihood.looks_like_token),
    _key_pattern("perplexity-key", r"pplx-[A-Za-z0-9]{20,120}", "pplx-"),
    _key_pattern("nvidia-key", r"nvapi-[A-Za-z0-9_-]{20,120}", "nvapi-"),
    _key_pattern("huggingface-token", r"(?:hf|api_org)_[A-Za-z0-9]{30,64}", "hf_", "api_org_"),
    _key_pattern("replicate-key", r"r8_[A-Za-z0-9]{30,64}", "r8_"),
    _key_pattern("google-key", r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _key_pattern("google-token", r"ya29\.[A-Za-z0-9_-]{20,500}", "ya29."),
    _key_pattern("google-secret", r"GOCSPX-[A-Za-z0-9_-]{20,64}", "GOCSPX-"),
    _key_pattern("aws-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", "AKIA", "ASIA", "ABIA", "ACCA"),
    _key_pattern("aws-bedrock-key", r"ABSK[A-Za-z0-9+/=]{60,250}", "ABSK"),
    SecretPattern(
        "azure-key",
        r"(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,100}={0,2})",
        ("accountkey=", "sharedaccesskey="),
    ),
    _key_pattern("azure-secret", r"[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}", "7Q~", "8Q~"),
    _key_pattern("github-token", r"gh[pousr]_[A-Za-z0-9]{30,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _key_pattern("github-token", r"github_pat_[A-Za-z0-9_]{40,255}", "github_pat_"),
    _key_pattern("gitlab-token", r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|imt|oas)-[A-Za-z0-9_.-]{20,120}", *_GITLAB),
    _key_pattern("bitbucket-token", r"ATBB[A-Za-z0-9_=.-]{24,64}", "ATBB"),
    _key_pattern("atlassian-token", r"ATATT3[A-Za-z0-9_=-]{60,250}", "ATATT3"),
    _key_pattern("slack-token", r"xox[abeoprs]-(?:[0-9]-)?[A-Za-z0-9-]{10,250}", "xox"),
    _key_pattern("slack-token", r"xapp-[0-9]-[A-Za-z0-9-]{20,250}", "xapp-"),
    _key_pattern("discord-token", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", "."),
    _key_pattern("telegram-token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36}", ":AA"),
    _key_pattern("stripe-key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}", "k_live_", "k_test_"),
    _key_pattern("stripe-secret", r"whsec_[A-Za-z0-9+/=]{24,100}", "whsec_"),
    _key_pattern("square-token", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,64}", "sq0"),
    _key_pattern("shopify-token", r"shp(?:at|ca|pa|ss|tka)_[A-Fa-f0-9]{32}", "shp"),
    _key_pattern("twilio-key", r"SK[0-9a-f]{32}\b", "SK"),
    _key_pattern("sendgrid-key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", "SG."),
    _key_pattern("mailgun-key", r"key-[0-9a-f]{32}\b", "key-"),
    _key_pattern("mailchimp-key", r"[0-9a-f]{32}-us[0-9]{1,2}\b", "-us"),
    _key_pattern("npm-token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _key_pattern("pypi-token", r"pypi-[A-Za-z0-9_-]{50,300}", "pypi-"),
    _key_pattern("rubygems-key", r"rubygems_[0-9a-f]{48}", "rubygems_"),
    _key_pattern("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}", "dckr_"),
    _key_pattern("digitalocean-token", r"do[opr]_v1_[0-9a-f]{64}", "_v1_"),
    _key_pattern("heroku-key", r"HRKU-[A-Za-z0-9_-]{30,80}", "HRKU-"),
    _key_pattern("fly-token", r"(?:fo1_|FlyV1 fm[12]_)[A-Za-z0-9+/=,_-]{20,600}", "fo1_", "FlyV1"),
    _key_pattern("netlify-token", r"nfp_[A-Za-z0-9]{30,64}", "nfp_"),
    _key_pattern("cloudflare-key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,180}", "v1.0-"),
    _key_pattern("databricks-token", r"dapi[0-9a-f]{32}(?:-[0-9])?\b", "dapi"),
    _key_pattern("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,80}", "dp."),
    _key_pattern("vault-token", r"hv[bsr]\.[A-Za-z0-9_-]{20,250}", "hvs.", "hvb.", "hvr."),
    _key_pattern("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{50,80}", ".atlasv1."),
    _key_pattern("pulumi-token", r"pul-[0-9a-f]{40}\b", "pul-"),
    _key_pattern("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,80}", "lin_"),
    _key_pattern("notion-token", r"ntn_[A-Za-z0-9]{40,64}", "ntn_"),
    _key_pattern("notion-token", r"secret_[A-Za-z0-9]{43}\b", "secret_"),
    _key_pattern("figma-token", r"figd_[A-Za-z0-9_-]{30,64}", "figd_"),
    _key_pattern("postman-key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-"),
    _key_pattern("newrelic-key", r"NRAK-[A-Z0-9]{27}\b", "NRAK-"),
    _key_pattern("grafana-token", r"gl(?:sa_[A-Za-z0-9]{32}_[0-9a-f]{8}|c_[A-Za-z0-9+/=]{32,400})", "glsa_", "glc_"),
    _key_pattern("sentry-token", r"sntry[su]_[A-Za-z0-9_+/=-]{40,300}", "sntry"),
    _key_pattern("supabase-key", r"sb(?:p_[0-9a-f]{40}|_secret_[A-Za-z0-9_-]{20,64})", "sbp_", "sb_secret_"),
    _key_pattern("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{30,80}", "pscale_"),
    _key_pattern("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9_-]{16,80}", "tskey-"),
    _key_pattern("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "AGE-SECRET-KEY-1"),
    SecretPattern(
        "jwt", r"(?:\b|\\[nrt])(eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{4,8000}\.[A-Za-z0-9_-]{8,2000})", ("eyJ",)
    ),
    SecretPattern(
        "jwt",
        r"(?:\b|\\[nrt])(eyJ[A-Za-z0-9_-]{16,4000}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,400}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,400})",
        ("eyJ",),
    ),
)

CARDS = (
    SecretPattern(
        "card",
        r"(?:\b|\\[nrt])([2-6][0-9]{12,18}|[2-6][0-9]{3}(?:[ -][0-9]{4}){3}|3[47][0-9]{2}[ -][0-9]{6}[ -][0-9]{5})\b",
        tuple("23456"),
        secret_likelihood.is_card_number,
    ),
)

EMAILS = (
    SecretPattern("email", r"\b([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24})\b", ("@",)),
)

ADDRESSES = (
    SecretPattern(
        "ip",
        r"(?:^|[^0-9A-Za-z.])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?:$|[^0-9A-Za-z.]|\.(?:\s|$))",
        (".",),
        secret_likelihood.is_host_address,
    ),
    SecretPattern(
        "ip",
        r"(?:^|[^0-9A-Za-z:.])((?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?:$|[^0-9A-Za-z:.])",
        (":",),
        secret_likelihood.is_host_address,
    ),
)

ENTROPY = (
    SecretPattern(
        "entropy", r"(?:^|[^A-Za-z0-9+/_=.-])([A-Za-z0-9+/_-]{20,200}={0,2})", ("",), secret_likelihood.is_high_entropy
    ),
)
