"""Every provider that is known by name, one row each. Adding one is adding a row.

Only data, and cheap to import: the configuration reads the variables here, the engine never sees it.
"""

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Literal

from msgspec import Struct

Entry = Literal["key", "none", "aws", "google", "github", "chatgpt"]
"""How one gets in: with an API key; without anything; with a login that is kept fresh."""
Quirk = Literal["effort", "cache_key", "no_max_tokens", "no_stream_usage", "thoughts_back"]
"""What a service takes or minds beside its dialect:

effort: chat takes `reasoning_effort` · cache_key: chat takes `prompt_cache_key` · no_max_tokens: minds a limit for
the answer · no_stream_usage: minds `stream_options` · thoughts_back: wants its reasoning back with its calls
"""


class Row(Struct, frozen=True, kw_only=True):
    """One provider. `base_url` may have blanks like `{region}`, which `blanks` and the configuration fill."""

    name: str
    title: str
    dialect: str
    base_url: str
    keys: tuple[str, ...] = ()
    """The variables that may hold its key, the one that counts first."""
    url_from: str = ""
    """The vendor's own variable for another address."""
    suffix: str = ""
    """What the vendor's variable leaves out at the end of the address."""
    blanks: Mapping[str, tuple[str, ...]] = {}
    """Which variables fill the blanks."""
    filled: Mapping[str, str] = {}
    """What fills a blank that nobody fills."""
    key_header: str = ""
    """The header that carries the key, where it is not `Authorization: Bearer`."""
    headers: Mapping[str, str] = {}
    quirks: tuple[Quirk, ...] = ()
    entry: Entry = "key"
    like: str = ""
    """The row whose key and address it shares: the same service in another dialect."""
    local: bool = False
    """A server that people run themselves: it is looked for at its usual address."""
    console: str = ""
    """Where people get a key."""


COPILOT = {
    "Editor-Version": "sylph/1",
    "Editor-Plugin-Version": "sylph/1",
    "Copilot-Integration-Id": "vscode-chat",
    "Openai-Intent": "conversation-edits",
}

# In the order in which they are preferred, where several are set up and nobody chose.
ROWS: tuple[Row, ...] = (
    Row(
        name="anthropic",
        title="Anthropic",
        dialect="anthropic",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        url_from="ANTHROPIC_BASE_URL",
        key_header="x-api-key",
        console="console.anthropic.com/settings/keys",
    ),
    Row(
        name="openai",
        title="OpenAI",
        dialect="responses",
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        url_from="OPENAI_BASE_URL",
        console="platform.openai.com/api-keys",
    ),
    Row(
        name="openai-chat",
        title="OpenAI, in Chat Completions",
        dialect="chat",
        base_url="https://api.openai.com/v1",
        quirks=("effort", "cache_key"),
        like="openai",
    ),
    Row(
        name="google",
        title="Google Gemini",
        dialect="gemini",
        base_url="https://generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        url_from="GOOGLE_GEMINI_BASE_URL",
        key_header="x-goog-api-key",
        console="aistudio.google.com/apikey",
    ),
    Row(
        name="openrouter",
        title="OpenRouter",
        dialect="chat",
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        url_from="OPENROUTER_BASE_URL",
        headers={"X-Title": "Sylph"},
        quirks=("effort",),
        console="openrouter.ai/settings/keys",
    ),
    Row(
        name="moonshot",
        title="Moonshot (Kimi)",
        dialect="chat",
        base_url="https://api.moonshot.ai/v1",
        keys=("MOONSHOT_API_KEY",),
        url_from="MOONSHOT_BASE_URL",
        quirks=("thoughts_back",),
        console="platform.moonshot.ai/console/api-keys",
    ),
    Row(
        name="deepseek",
        title="DeepSeek",
        dialect="chat",
        base_url="https://api.deepseek.com/v1",
        keys=("DEEPSEEK_API_KEY",),
        url_from="DEEPSEEK_BASE_URL",
        quirks=("thoughts_back",),
        console="platform.deepseek.com/api_keys",
    ),
    Row(
        name="qwen",
        title="Qwen (Alibaba Model Studio)",
        dialect="chat",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        keys=("DASHSCOPE_API_KEY",),
        console="modelstudio.console.alibabacloud.com",
    ),
    Row(
        name="minimax",
        title="MiniMax",
        dialect="chat",
        base_url="https://api.minimax.io/v1",
        keys=("MINIMAX_API_KEY",),
        url_from="MINIMAX_BASE_URL",
        console="platform.minimax.io",
    ),
    Row(
        name="xai",
        title="xAI (Grok)",
        dialect="chat",
        base_url="https://api.x.ai/v1",
        keys=("XAI_API_KEY",),
        url_from="XAI_BASE_URL",
        console="console.x.ai",
    ),
    Row(
        name="mistral",
        title="Mistral",
        dialect="chat",
        base_url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        quirks=("no_stream_usage",),
        console="console.mistral.ai/api-keys",
    ),
    Row(
        name="groq",
        title="Groq",
        dialect="chat",
        base_url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        url_from="GROQ_BASE_URL",
        suffix="openai/v1",
        console="console.groq.com/keys",
    ),
    Row(
        name="together",
        title="Together AI",
        dialect="chat",
        base_url="https://api.together.xyz/v1",
        keys=("TOGETHER_API_KEY",),
        url_from="TOGETHER_BASE_URL",
        console="api.together.ai/settings/api-keys",
    ),
    Row(
        name="cerebras",
        title="Cerebras",
        dialect="chat",
        base_url="https://api.cerebras.ai/v1",
        keys=("CEREBRAS_API_KEY",),
        url_from="CEREBRAS_BASE_URL",
        suffix="v1",
        console="cloud.cerebras.ai",
    ),
    Row(
        name="azure",
        title="Azure OpenAI",
        dialect="responses",
        base_url="https://{resource}.openai.azure.com/openai/v1",
        keys=("AZURE_OPENAI_API_KEY",),
        url_from="AZURE_OPENAI_ENDPOINT",
        suffix="openai/v1",
        blanks={"resource": ("AZURE_OPENAI_RESOURCE", "AZURE_RESOURCE_NAME")},
        key_header="api-key",
        console="portal.azure.com",
    ),
    Row(
        name="vertex",
        title="Google Vertex AI",
        dialect="gemini",
        base_url="https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}/publishers/google",
        keys=("CLOUDSDK_AUTH_ACCESS_TOKEN",),
        url_from="GOOGLE_VERTEX_BASE_URL",
        suffix="v1/projects/{project}/locations/{location}/publishers/google",
        blanks={"project": ("GOOGLE_CLOUD_PROJECT",), "location": ("GOOGLE_CLOUD_LOCATION",)},
        filled={"location": "global"},
        entry="google",
        console="console.cloud.google.com/vertex-ai",
    ),
    Row(
        name="bedrock",
        title="AWS Bedrock",
        dialect="bedrock",
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        url_from="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        blanks={
            "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
            "profile": ("AWS_PROFILE",),
            "access": ("AWS_ACCESS_KEY_ID",),
        },
        filled={"region": "us-east-1"},
        entry="aws",
        console="console.aws.amazon.com/bedrock",
    ),
    Row(
        name="copilot",
        title="GitHub Copilot",
        dialect="chat",
        base_url="https://api.githubcopilot.com",
        headers=COPILOT,
        entry="github",
    ),
    Row(
        name="chatgpt",
        title="ChatGPT subscription",
        dialect="responses",
        base_url="https://chatgpt.com/backend-api/codex",
        headers={"OpenAI-Beta": "responses=experimental", "originator": "sylph"},
        quirks=("no_max_tokens",),
        entry="chatgpt",
    ),
    Row(
        name="ollama",
        title="Ollama",
        dialect="ollama",
        base_url="http://127.0.0.1:11434",
        keys=("OLLAMA_API_KEY",),
        url_from="OLLAMA_HOST",
        entry="none",
        local=True,
    ),
    Row(
        name="llamacpp",
        title="llama.cpp",
        dialect="chat",
        base_url="http://127.0.0.1:8080/v1",
        keys=("LLAMA_API_KEY",),
        entry="none",
        local=True,
    ),
    Row(
        name="vllm",
        title="vLLM",
        dialect="chat",
        base_url="http://127.0.0.1:8000/v1",
        keys=("VLLM_API_KEY",),
        entry="none",
        local=True,
    ),
    Row(
        name="lmstudio",
        title="LM Studio",
        dialect="chat",
        base_url="http://127.0.0.1:1234/v1",
        keys=("LM_API_TOKEN",),
        entry="none",
        local=True,
    ),
)
TABLE: Mapping[str, Row] = {row.name: row for row in ROWS}


def row(name: str, table: Mapping[str, Row] = TABLE) -> Row:
    """The row of that name; for any other name a service that speaks Chat Completions, as most do."""
    return table.get(name) or Row(name=name, title=name, dialect="chat", base_url="")


def variables(rows: Iterable[Row] = ROWS) -> dict[str, str]:
    """Each variable of the vendors with the key of the config file that it stands for."""
    found: dict[str, str] = {}
    for each in rows:
        if each.url_from:
            found.setdefault(each.url_from, f"providers.{each.name}.base_url")
        for variable in each.keys:
            found.setdefault(variable, f"providers.{each.name}.api_key")
        for blank, names in each.blanks.items():
            for variable in names:
                found.setdefault(variable, f"providers.{each.name}.place.{blank}")
    return found


def address(row: Row, place: Mapping[str, str]) -> str:
    """The row's own address with its blanks filled; empty where one of them stays open."""
    return _filled(row.base_url, row, place)


def blanks(row: Row, place: Mapping[str, str]) -> list[str]:
    """The blanks of its address that nobody has filled."""
    return _open(row.base_url, row, place)


def whole(row: Row, told: str, place: Mapping[str, str]) -> str:
    """The address out of the vendor's variable, which may leave out the end of it; empty where a blank stays open."""
    told = told.strip().rstrip("/")
    end = _filled(row.suffix, row, place)
    if row.suffix and not end:
        return ""
    return told if not end or told.endswith(f"/{end}") else f"{told}/{end}"


def _filled(text: str, row: Row, place: Mapping[str, str]) -> str:
    filled = {**row.filled, **{name: value for name, value in place.items() if value}}
    return "" if _open(text, row, place) else text.format_map(filled)


def _open(text: str, row: Row, place: Mapping[str, str]) -> list[str]:
    named = dict.fromkeys(name for _, name, _, _ in Formatter().parse(text) if name)
    return [name for name in named if not place.get(name) and name not in row.filled]
