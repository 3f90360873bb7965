"""Every provider that is known by name, one row each. Adding one is adding a row.

Only data, and cheap to import: the configuration reads the variables here, the engine never sees it.
"""

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Literal

from msgspec import Struct

AuthMethod = Literal["key", "none", "aws", "google", "github", "chatgpt"]
"""How one gets in: with an API key; without anything; with a login that is kept fresh."""
Quirk = Literal["effort", "cache_key", "no_max_tokens", "no_stream_usage", "thoughts_back"]
"""What a service takes or minds beside its dialect:

effort: chat takes `reasoning_effort` · cache_key: chat takes `prompt_cache_key` · no_max_tokens: minds a limit for
the answer · no_stream_usage: minds `stream_options` · thoughts_back: wants its reasoning back with its calls
"""


class Vendor(Struct, frozen=True, kw_only=True):
    """One provider. `base_url` may have blanks like `{region}`, which `blanks` and the configuration fill."""

    name: str
    title: str
    dialect: str
    base_url: str
    key_variables: tuple[str, ...] = ()
    """The variables that may hold its key, the one that counts first."""
    url_variable: str = ""
    """The vendor's own variable for another address."""
    url_suffix: str = ""
    """What the vendor's variable leaves out at the end of the address."""
    placeholder_variables: Mapping[str, tuple[str, ...]] = {}
    """Which variables fill the blanks."""
    placeholder_defaults: Mapping[str, str] = {}
    """What fills a blank that nobody fills."""
    key_header: str = ""
    """The header that carries the key, where it is not `Authorization: Bearer`."""
    headers: Mapping[str, str] = {}
    quirks: tuple[Quirk, ...] = ()
    auth_method: AuthMethod = "key"
    variant_of: str = ""
    """The row whose key and address it shares: the same service in another dialect."""
    local: bool = False
    """A server that people run themselves: it is looked for at its usual address."""
    console: str = ""
    """Where people get a key."""


COPILOT_HEADERS = {
    "Editor-Version": "sylph/1",
    "Editor-Plugin-Version": "sylph/1",
    "Copilot-Integration-Id": "vscode-chat",
    "Openai-Intent": "conversation-edits",
}

# In the order in which they are preferred, where several are set up and nobody chose.
VENDORS: tuple[Vendor, ...] = (
    Vendor(
        name="anthropic",
        title="Anthropic",
        dialect="anthropic",
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        url_variable="ANTHROPIC_BASE_URL",
        key_header="x-api-key",
        console="console.anthropic.com/settings/keys",
    ),
    Vendor(
        name="openai",
        title="OpenAI",
        dialect="responses",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        url_variable="OPENAI_BASE_URL",
        console="platform.openai.com/api-keys",
    ),
    Vendor(
        name="openai-chat",
        title="OpenAI, in Chat Completions",
        dialect="chat",
        base_url="https://api.openai.com/v1",
        quirks=("effort", "cache_key"),
        variant_of="openai",
    ),
    Vendor(
        name="google",
        title="Google Gemini",
        dialect="gemini",
        base_url="https://generativelanguage.googleapis.com",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        url_variable="GOOGLE_GEMINI_BASE_URL",
        key_header="x-goog-api-key",
        console="aistudio.google.com/apikey",
    ),
    Vendor(
        name="openrouter",
        title="OpenRouter",
        dialect="chat",
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        url_variable="OPENROUTER_BASE_URL",
        headers={"X-Title": "Sylph"},
        quirks=("effort",),
        console="openrouter.ai/settings/keys",
    ),
    Vendor(
        name="moonshot",
        title="Moonshot (Kimi)",
        dialect="chat",
        base_url="https://api.moonshot.ai/v1",
        key_variables=("MOONSHOT_API_KEY",),
        url_variable="MOONSHOT_BASE_URL",
        quirks=("thoughts_back",),
        console="platform.moonshot.ai/console/api-keys",
    ),
    Vendor(
        name="deepseek",
        title="DeepSeek",
        dialect="chat",
        base_url="https://api.deepseek.com/v1",
        key_variables=("DEEPSEEK_API_KEY",),
        url_variable="DEEPSEEK_BASE_URL",
        quirks=("thoughts_back",),
        console="platform.deepseek.com/api_keys",
    ),
    Vendor(
        name="qwen",
        title="Qwen (Alibaba Model Studio)",
        dialect="chat",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variables=("DASHSCOPE_API_KEY",),
        console="modelstudio.console.alibabacloud.com",
    ),
    Vendor(
        name="minimax",
        title="MiniMax",
        dialect="chat",
        base_url="https://api.minimax.io/v1",
        key_variables=("MINIMAX_API_KEY",),
        url_variable="MINIMAX_BASE_URL",
        console="platform.minimax.io",
    ),
    Vendor(
        name="xai",
        title="xAI (Grok)",
        dialect="chat",
        base_url="https://api.x.ai/v1",
        key_variables=("XAI_API_KEY",),
        url_variable="XAI_BASE_URL",
        console="console.x.ai",
    ),
    Vendor(
        name="mistral",
        title="Mistral",
        dialect="chat",
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        quirks=("no_stream_usage",),
        console="console.mistral.ai/api-keys",
    ),
    Vendor(
        name="groq",
        title="Groq",
        dialect="chat",
        base_url="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        url_variable="GROQ_BASE_URL",
        url_suffix="openai/v1",
        console="console.groq.com/keys",
    ),
    Vendor(
        name="together",
        title="Together AI",
        dialect="chat",
        base_url="https://api.together.xyz/v1",
        key_variables=("TOGETHER_API_KEY",),
        url_variable="TOGETHER_BASE_URL",
        console="api.together.ai/settings/api-keys",
    ),
    Vendor(
        name="cerebras",
        title="Cerebras",
        dialect="chat",
        base_url="https://api.cerebras.ai/v1",
        key_variables=("CEREBRAS_API_KEY",),
        url_variable="CEREBRAS_BASE_URL",
        url_suffix="v1",
        console="cloud.cerebras.ai",
    ),
    Vendor(
        name="azure",
        title="Azure OpenAI",
        dialect="responses",
        base_url="https://{resource}.openai.azure.com/openai/v1",
        key_variables=("AZURE_OPENAI_API_KEY",),
        url_variable="AZURE_OPENAI_ENDPOINT",
        url_suffix="openai/v1",
        placeholder_variables={"resource": ("AZURE_OPENAI_RESOURCE", "AZURE_RESOURCE_NAME")},
        key_header="api-key",
        console="portal.azure.com",
    ),
    Vendor(
        name="vertex",
        title="Google Vertex AI",
        dialect="gemini",
        base_url="https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}/publishers/google",
        key_variables=("CLOUDSDK_AUTH_ACCESS_TOKEN",),
        url_variable="GOOGLE_VERTEX_BASE_URL",
        url_suffix="v1/projects/{project}/locations/{location}/publishers/google",
        placeholder_variables={"project": ("GOOGLE_CLOUD_PROJECT",), "location": ("GOOGLE_CLOUD_LOCATION",)},
        placeholder_defaults={"location": "global"},
        auth_method="google",
        console="console.cloud.google.com/vertex-ai",
    ),
    Vendor(
        name="bedrock",
        title="AWS Bedrock",
        dialect="bedrock",
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        url_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        placeholder_variables={
            "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
            "profile": ("AWS_PROFILE",),
            "access": ("AWS_ACCESS_KEY_ID",),
        },
        placeholder_defaults={"region": "us-east-1"},
        auth_method="aws",
        console="console.aws.amazon.com/bedrock",
    ),
    Vendor(
        name="copilot",
        title="GitHub Copilot",
        dialect="chat",
        base_url="https://api.githubcopilot.com",
        headers=COPILOT_HEADERS,
        auth_method="github",
    ),
    Vendor(
        name="chatgpt",
        title="ChatGPT subscription",
        dialect="responses",
        base_url="https://chatgpt.com/backend-api/codex",
        headers={"OpenAI-Beta": "responses=experimental", "originator": "sylph"},
        quirks=("no_max_tokens",),
        auth_method="chatgpt",
    ),
    Vendor(
        name="ollama",
        title="Ollama",
        dialect="ollama",
        base_url="http://127.0.0.1:11434",
        key_variables=("OLLAMA_API_KEY",),
        url_variable="OLLAMA_HOST",
        auth_method="none",
        local=True,
    ),
    Vendor(
        name="llamacpp",
        title="llama.cpp",
        dialect="chat",
        base_url="http://127.0.0.1:8080/v1",
        key_variables=("LLAMA_API_KEY",),
        auth_method="none",
        local=True,
    ),
    Vendor(
        name="vllm",
        title="vLLM",
        dialect="chat",
        base_url="http://127.0.0.1:8000/v1",
        key_variables=("VLLM_API_KEY",),
        auth_method="none",
        local=True,
    ),
    Vendor(
        name="lmstudio",
        title="LM Studio",
        dialect="chat",
        base_url="http://127.0.0.1:1234/v1",
        key_variables=("LM_API_TOKEN",),
        auth_method="none",
        local=True,
    ),
)
VENDORS_BY_NAME: Mapping[str, Vendor] = {row.name: row for row in VENDORS}


def find_vendor(name: str, table: Mapping[str, Vendor] = VENDORS_BY_NAME) -> Vendor:
    """The row of that name; for any other name a service that speaks Chat Completions, as most do."""
    return table.get(name) or Vendor(name=name, title=name, dialect="chat", base_url="")


def vendor_variables(rows: Iterable[Vendor] = VENDORS) -> dict[str, str]:
    """Each variable of the vendors with the key of the config file that it stands for."""
    found: dict[str, str] = {}
    for each in rows:
        if each.url_variable:
            found.setdefault(each.url_variable, f"providers.{each.name}.base_url")
        for variable in each.key_variables:
            found.setdefault(variable, f"providers.{each.name}.api_key")
        for blank, names in each.placeholder_variables.items():
            for variable in names:
                found.setdefault(variable, f"providers.{each.name}.place.{blank}")
    return found


def vendor_url(row: Vendor, place: Mapping[str, str]) -> str:
    """The row's own address with its blanks filled; empty where one of them stays open."""
    return _fill_placeholders(row.base_url, row, place)


def missing_placeholders(row: Vendor, place: Mapping[str, str]) -> list[str]:
    """The blanks of its address that nobody has filled."""
    return _open_placeholders(row.base_url, row, place)


def complete_url(row: Vendor, told: str, place: Mapping[str, str]) -> str:
    """The address out of the vendor's variable, which may leave out the end of it; empty where a blank stays open."""
    told = told.strip().rstrip("/")
    end = _fill_placeholders(row.url_suffix, row, place)
    if row.url_suffix and not end:
        return ""
    return told if not end or told.endswith(f"/{end}") else f"{told}/{end}"


def _fill_placeholders(text: str, row: Vendor, place: Mapping[str, str]) -> str:
    filled = {**row.placeholder_defaults, **{name: value for name, value in place.items() if value}}
    return "" if _open_placeholders(text, row, place) else text.format_map(filled)


def _open_placeholders(text: str, row: Vendor, place: Mapping[str, str]) -> list[str]:
    named = dict.fromkeys(name for _, name, _, _ in Formatter().parse(text) if name)
    return [name for name in named if not place.get(name) and name not in row.placeholder_defaults]
