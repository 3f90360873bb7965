"""The veil between secrets and all that is written or sent: placeholders on the way out, values on the way in."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ToolError
from sylph.core.events import Fact, Signal, UnreadableRecord
from sylph.core.messages import Message, ToolCall
from sylph.core.provider import ModelReply, ModelRequest
from sylph.engine.redact.learned_secrets import LearnedSecrets
from sylph.engine.redact.placeholder import PLACEHOLDER_HINT, PLACEHOLDER_PATTERN, format_placeholder, placeholder_kind
from sylph.engine.redact.policy import SHORTEST, RedactionPolicy

if TYPE_CHECKING:
    from sylph.engine.redact.secret_finder import SecretFinder, SecretMatch
    from sylph.engine.redact.vault import SecretVault

F = TypeVar("F", bound=Fact)

# What a fact says in words of its own: names, numbers and hashes that others are found by.
UNREDACTED_FIELDS = frozenset(
    [
        "id",
        "call",
        "calls",
        "digest",
        "whole",
        "head",
        "tail",
        "key",
        "model",
        "was",
        "mode",
        "workspace",
        "parent",
        "root",
        "topic",
        "turn",
        "input",
        "retry_of",
        "undo",
        "redo",
        "hash",
        "media",
        "kind",
        "effect",
        "risk",
        "role",
        "finish",
        "decision",
        "by",
        "profile",
        "event",
        "to",
        "state",
        "channel",
        "delivery",
        "outcome",
        "recourse",
        "facts",
        "blobs",
        "sylph",
        "urgency",
        "until",
        "missed",
    ]
)
# A shorter value of a variable is more likely a word that stands elsewhere too.
MIN_VARIABLE_LENGTH = 8
MAX_REMEMBERED = 20_000


class NoRedaction:
    """Hides nothing and restores nothing: for a replay, whose world is its recording, and for tests."""

    hides: bool = False

    def redact_text(self, text: str) -> str:
        """`text` with a placeholder for every secret."""
        return text

    def add_secret(self, value: str, name: str) -> None:
        """From now on this value is secret wherever it stands: a credential that was just opened."""

    def forget_secret(self, value: str) -> int:  # noqa: ARG002 - nothing is known here
        """Forgets a value for good; returns in how many places it was known."""
        return 0

    def hints_at_secret(self, text: str) -> bool:  # noqa: ARG002 - nothing is hidden here
        """Whether `text` may be the beginning of a line with a secret in it."""
        return False

    def redact_fact(self, fact: F) -> F:
        return fact

    def redact_signal(self, signal: Signal) -> Signal:
        return signal

    def redact_request(self, request: ModelRequest) -> ModelRequest:
        return request

    def redact_reply(self, reply: ModelReply) -> ModelReply:
        return reply

    def restore_text(self, text: str) -> str:
        """`text` with the values of the placeholders that are known."""
        return text

    def restore_fact(self, fact: F) -> F:
        """A fact with the values of its placeholders: what it is about are true names of files."""
        return fact

    def encryption_key(self) -> bytes:
        """What things are sealed with that have to be kept as they are; empty for not at all."""
        return b""

    def restore_arguments(self, arguments: str) -> str:
        """The arguments of a call with all values. Raises ToolError where one is not known any more."""
        return arguments


class Redactor(NoRedaction):
    """Nothing is loaded until there is text to look at, and the vault not until there is a secret or a placeholder."""

    def __init__(self, terms: RedactionPolicy, folder: Path) -> None:
        self._terms, self._folder, self.hides = terms, folder, terms.enabled
        self._key = b""
        self._clean: set[int] = set()
        self._sent: set[int] = set()
        self._passed: dict[int, Message] = {}
        self._known: dict[str, str] = {}
        self._learned = LearnedSecrets()
        self._loaded: tuple[SecretFinder, SecretVault] | None = None
        if terms.enabled and (terms.patterns or terms.allow):
            # What is wrong with them is told before anything is done.
            self._load_parts()

    def encryption_key(self) -> bytes:
        if not self._key:
            from sylph.engine.redact.vault import load_home_key

            self._key = load_home_key(self._folder)
        return self._key

    def redact_text(self, text: str) -> str:
        if not self._terms.enabled or len(text) < SHORTEST or hash(text) in self._clean:
            return text
        finder, vault = self._load_parts()
        learned = self._learned
        found = finder.find_secrets(text, {**self._known, **learned.anywhere}, learned.assigned)
        if sum(self._learn_value(placeholder_kind(kind), text[start:end]) for start, end, kind in found):
            # What was learned here may stand here once more, without the words that gave it away.
            found = finder.find_secrets(text, {**self._known, **learned.anywhere}, learned.assigned)
        return self._replace_matches(text, found, vault) if found else _remember_clean(text, self._clean)

    def add_secret(self, value: str, name: str) -> None:
        if self._terms.enabled and len(value) >= SHORTEST and value not in self._known:
            self._load_parts()
            self._known = {**self._known, value: placeholder_kind(name)}
            for seen in (self._clean, self._sent, self._passed):
                seen.clear()

    def forget_secret(self, value: str) -> int:
        self._learned.drop(value)
        return self._load_parts()[1].forget_value(value)

    def hints_at_secret(self, text: str) -> bool:
        return self._load_parts()[0].hints_at_secret(text) or any(
            value[:4] in text for value in {**self._known, **self._learned.anywhere}
        )

    def _redact_outgoing(self, text: str) -> str:
        """The same for what is in the log. What was learned later does not change what was said before."""
        if len(text) < SHORTEST or hash(text) in self._sent:
            return text
        finder, vault = self._load_parts()
        found = finder.find_secrets(text, self._known)
        return self._replace_matches(text, found, vault) if found else _remember_clean(text, self._sent)

    def _replace_matches(self, text: str, found: Iterable["SecretMatch"], vault: "SecretVault") -> str:
        taken = [match.span() for match in PLACEHOLDER_PATTERN.finditer(text)] if PLACEHOLDER_HINT in text else []
        pieces, at = list[str](), 0
        for start, end, kind in found:
            if not any(a < end and start < b for a, b in taken):
                entry = vault.put_value(placeholder_kind(kind), text[start:end])
                pieces += [text[at:start], format_placeholder(entry.kind, entry.tag)]
                at = end
        return "".join((*pieces, text[at:]))

    def _learn_value(self, kind: str, value: str) -> bool:
        """From now on a value is known without the words around it."""
        if value in self._known or not self._learned.add(kind, value):
            return False
        self._clean.clear()
        return True

    def _load_parts(self) -> tuple["SecretFinder", "SecretVault"]:
        if self._loaded is None:
            from sylph.engine.redact.secret_finder import SecretFinder
            from sylph.engine.redact.vault import SecretVault

            self._loaded = SecretFinder(self._terms), SecretVault(self._folder, self._terms.days)
            self._known = _secret_variants(self._terms)
            if (self._folder / "values").exists():
                for entry in self._loaded[1].entries:
                    self._learn_value(entry.kind, entry.value)
        return self._loaded

    def redact_fact(self, fact: F) -> F:
        if not self._terms.enabled or isinstance(fact, UnreadableRecord):
            return fact
        return self._redact_struct(fact)

    def _redact_struct(self, value: Any) -> Any:
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            if name in UNREDACTED_FIELDS:
                continue
            item = getattr(value, name)
            if name == "arguments":
                new = self._redact_json(item, self.redact_text)
            elif name == "native":
                # Words that a service has signed are sent back as they are, or not at all.
                new = item if not item or self._redact_json(item, self.redact_text) == item else ""
            else:
                new = self._redact_value(item)
            if new is not item:
                changed[name] = new
        return replace(value, **changed) if changed else value

    def _redact_value(self, value: Any) -> Any:
        """The same value, if there was nothing to hide in it."""
        match value:
            case str():
                new = self.redact_text(value)
                return value if new == value else new
            case msgspec.Struct():
                return self._redact_struct(value)
            case tuple():
                items = cast("tuple[Any, ...]", value)
                new = tuple(map(self._redact_value, items))
                return items if all(a is b for a, b in zip(items, new, strict=True)) else new
            case dict():
                table = cast("dict[str, Any]", value)
                fresh = {self.redact_text(key): self._redact_value(item) for key, item in table.items()}
                return table if fresh == table else fresh
            case _:
                return value

    def _redact_json(self, text: str, hide: Callable[[str], str]) -> str:
        """JSON as it came, unless there is something to hide: in one of its texts, or in a text by its name."""
        try:
            told = msgspec.json.decode(text) if len(text) >= SHORTEST else None
        except (msgspec.DecodeError, UnicodeEncodeError):
            return _prefer_original(text, hide(text))
        hidden = _map_strings(told, hide)
        whole = text if hidden == told else msgspec.json.encode(hidden).decode()
        named = hide(whole)
        return _prefer_original(text, named if named == whole or _is_json(named) else whole)

    def redact_signal(self, signal: Signal) -> Signal:
        return self._redact_struct(signal) if self._terms.enabled else signal

    def redact_request(self, request: ModelRequest) -> ModelRequest:
        """What goes out. All of it comes from the log, where no secret is; but older logs may hold some."""
        if not self._terms.enabled:
            return request
        system, passed = self._redact_outgoing(request.system), self._passed
        if system == request.system and all(id(message) in passed for message in request.messages):
            return request
        messages = tuple(map(self._redact_message, request.messages))
        same = system == request.system and all(a is b for a, b in zip(messages, request.messages, strict=True))
        return request if same else replace(request, system=system, messages=messages)

    def redact_reply(self, reply: ModelReply) -> ModelReply:
        """An answer as it will be in the log: what is made of it does not depend on what it was before."""
        return self._redact_struct(reply) if self._terms.enabled else reply

    def _redact_message(self, message: Message) -> Message:
        if id(message) in self._passed:
            return message
        text, reasoning = self._redact_outgoing(message.text), self._redact_outgoing(message.reasoning)
        calls = tuple(map(self._redact_call, message.calls))
        native = message.native
        if (
            native
            and hash(native.items) not in self._sent
            and self._redact_json(native.items, self._redact_outgoing) != native.items
        ):
            native = None
        same = text == message.text and reasoning == message.reasoning and native is message.native
        if same and all(a is b for a, b in zip(calls, message.calls, strict=True)):
            if len(self._passed) > MAX_REMEMBERED:
                self._passed.clear()
            # Kept with its number, so that no other one can get it.
            self._passed[id(message)] = message
            return message
        return replace(message, text=text, reasoning=reasoning, calls=calls, native=native)

    def _redact_call(self, call: ToolCall) -> ToolCall:
        if hash(call.arguments) in self._sent:
            return call
        arguments = self._redact_json(call.arguments, self._redact_outgoing)
        return call if arguments == call.arguments else replace(call, arguments=arguments)

    def restore_text(self, text: str) -> str:
        if PLACEHOLDER_HINT not in text:
            return text
        vault = self._load_parts()[1]

        def value(match: Any) -> str:
            entry = vault.get(match[2])
            # What is used is met: it is kept on.
            return vault.put_value(entry.kind, entry.value).value if entry else match[0]

        return PLACEHOLDER_PATTERN.sub(value, text)

    def restore_fact(self, fact: F) -> F:
        if PLACEHOLDER_HINT.encode() not in msgspec.json.encode(fact):
            return fact
        return msgspec.convert(_map_strings(msgspec.to_builtins(fact), self.restore_text), type(fact))

    def restore_arguments(self, arguments: str) -> str:
        if PLACEHOLDER_HINT not in arguments:
            return arguments
        try:
            told = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return arguments
        new = _map_strings(told, self._restore_fully)
        return arguments if new == told else msgspec.json.encode(new).decode()

    def _restore_fully(self, text: str) -> str:
        new = self.restore_text(text)
        if left := PLACEHOLDER_PATTERN.search(new):
            raise ToolError(
                f"The value behind {left[0]} is not known here (any more), so the call was not made.",
                kind="unknown_secret",
                next=[
                    "Get it again from where it came: read the file, or ask the user.",
                    "Do not make up placeholders.",
                ],
            )
        return new


def _remember_clean(text: str, clean: set[int]) -> str:
    """Nothing is in it: the next time that is known."""
    if len(clean) > MAX_REMEMBERED:
        clean.clear()
    clean.add(hash(text))
    return text


def _prefer_original(old: str, new: str) -> str:
    """The very same text, where nothing has changed."""
    return old if new == old else new


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_map_strings(item, change) for item in cast("Iterable[Any]", value)]
        case dict():
            table = cast("Mapping[Any, Any]", value)
            return {_map_strings(key, change): _map_strings(item, change) for key, item in table.items()}
        case _:
            return value


def _secret_variants(terms: RedactionPolicy) -> dict[str, str]:
    """Each value that is secret wherever it stands, as it is, and as it stands in a URL."""
    from urllib.parse import quote

    from sylph.engine.redact.secret_likelihood import is_variable_secret

    found = dict[str, str]()
    named = {
        value: name
        for value, name in terms.variables.items()
        if len(value) >= MIN_VARIABLE_LENGTH and is_variable_secret(value)
    }
    for value, name in {**named, **terms.literals}.items():
        if len(value) >= SHORTEST:
            found[value] = placeholder_kind(name)
            found.setdefault(quote(value, safe=""), placeholder_kind(name))
    return found
