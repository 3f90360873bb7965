"""The veil between secrets and all that is written or sent: placeholders on the way out, values on the way in."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from sylph.core.errors import ToolError
from sylph.core.events import Carried, Fact, Signal
from sylph.core.messages import Message, ToolCall
from sylph.core.provider import Reply, Request
from sylph.engine.redact.learned import Learned
from sylph.engine.redact.placeholder import MARK, SHAPE, kind_of, written
from sylph.engine.redact.terms import SHORTEST, Terms

if TYPE_CHECKING:
    from sylph.engine.redact.find import Finder, Found
    from sylph.engine.redact.vault import Vault

F = TypeVar("F", bound=Fact)

# What a fact says in words of its own: names, numbers and hashes that others are found by.
PLAIN = frozenset(
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
LONG = 8
REMEMBERED = 20_000


class Veil:
    """Hides nothing and restores nothing: for a replay, whose world is its recording, and for tests."""

    hides: bool = False

    def text(self, text: str) -> str:
        """`text` with a placeholder for every secret."""
        return text

    def guard(self, value: str, name: str) -> None:
        """From now on this value is secret wherever it stands: a credential that was just opened."""

    def forget(self, value: str) -> int:  # noqa: ARG002 - nothing is known here
        """Forgets a value for good; returns in how many places it was known."""
        return 0

    def suspects(self, text: str) -> bool:  # noqa: ARG002 - nothing is hidden here
        """Whether `text` may be the beginning of a line with a secret in it."""
        return False

    def fact(self, fact: F) -> F:
        return fact

    def signal(self, signal: Signal) -> Signal:
        return signal

    def request(self, request: Request) -> Request:
        return request

    def reply(self, reply: Reply) -> Reply:
        return reply

    def restored(self, text: str) -> str:
        """`text` with the values of the placeholders that are known."""
        return text

    def unveiled(self, fact: F) -> F:
        """A fact with the values of its placeholders: what it is about are true names of files."""
        return fact

    def key(self) -> bytes:
        """What things are sealed with that have to be kept as they are; empty for not at all."""
        return b""

    def arguments(self, arguments: str) -> str:
        """The arguments of a call with all values. Raises ToolError where one is not known any more."""
        return arguments


class Redactor(Veil):
    """Nothing is loaded until there is text to look at, and the vault not until there is a secret or a placeholder."""

    def __init__(self, terms: Terms, folder: Path) -> None:
        self._terms, self._folder, self.hides = terms, folder, terms.enabled
        self._key = b""
        self._clean: set[int] = set()
        self._sent: set[int] = set()
        self._passed: dict[int, Message] = {}
        self._known: dict[str, str] = {}
        self._learned = Learned()
        self._loaded: tuple[Finder, Vault] | None = None
        if terms.enabled and (terms.patterns or terms.allow):
            # What is wrong with them is told before anything is done.
            self._parts()

    def key(self) -> bytes:
        if not self._key:
            from sylph.engine.redact.vault import home_key

            self._key = home_key(self._folder)
        return self._key

    def text(self, text: str) -> str:
        if not self._terms.enabled or len(text) < SHORTEST or hash(text) in self._clean:
            return text
        finder, vault = self._parts()
        learned = self._learned
        found = finder.find(text, {**self._known, **learned.anywhere}, learned.assigned)
        if sum(self._learn(kind_of(kind), text[start:end]) for start, end, kind in found):
            # What was learned here may stand here once more, without the words that gave it away.
            found = finder.find(text, {**self._known, **learned.anywhere}, learned.assigned)
        return self._replaced(text, found, vault) if found else _remembered(text, self._clean)

    def guard(self, value: str, name: str) -> None:
        if self._terms.enabled and len(value) >= SHORTEST and value not in self._known:
            self._parts()
            self._known = {**self._known, value: kind_of(name)}
            for seen in (self._clean, self._sent, self._passed):
                seen.clear()

    def forget(self, value: str) -> int:
        self._learned.drop(value)
        return self._parts()[1].drop(value)

    def suspects(self, text: str) -> bool:
        return self._parts()[0].suspects(text) or any(
            value[:4] in text for value in {**self._known, **self._learned.anywhere}
        )

    def _outgoing(self, text: str) -> str:
        """The same for what is in the log. What was learned later does not change what was said before."""
        if len(text) < SHORTEST or hash(text) in self._sent:
            return text
        finder, vault = self._parts()
        found = finder.find(text, self._known)
        return self._replaced(text, found, vault) if found else _remembered(text, self._sent)

    def _replaced(self, text: str, found: Iterable["Found"], vault: "Vault") -> str:
        taken = [match.span() for match in SHAPE.finditer(text)] if MARK in text else []
        pieces, at = list[str](), 0
        for start, end, kind in found:
            if not any(a < end and start < b for a, b in taken):
                entry = vault.put(kind_of(kind), text[start:end])
                pieces += [text[at:start], written(entry.kind, entry.tag)]
                at = end
        return "".join((*pieces, text[at:]))

    def _learn(self, kind: str, value: str) -> bool:
        """From now on a value is known without the words around it."""
        if value in self._known or not self._learned.add(kind, value):
            return False
        self._clean.clear()
        return True

    def _parts(self) -> tuple["Finder", "Vault"]:
        if self._loaded is None:
            from sylph.engine.redact.find import Finder
            from sylph.engine.redact.vault import Vault

            self._loaded = Finder(self._terms), Vault(self._folder, self._terms.days)
            self._known = _variants(self._terms)
            if (self._folder / "values").exists():
                for entry in self._loaded[1].entries:
                    self._learn(entry.kind, entry.value)
        return self._loaded

    def fact(self, fact: F) -> F:
        if not self._terms.enabled or isinstance(fact, Carried):
            return fact
        return self._struct(fact)

    def _struct(self, value: Any) -> Any:
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            if name in PLAIN:
                continue
            item = getattr(value, name)
            if name == "arguments":
                new = self._json(item, self.text)
            elif name == "native":
                # Words that a service has signed are sent back as they are, or not at all.
                new = item if not item or self._json(item, self.text) == item else ""
            else:
                new = self._value(item)
            if new is not item:
                changed[name] = new
        return replace(value, **changed) if changed else value

    def _value(self, value: Any) -> Any:
        """The same value, if there was nothing to hide in it."""
        match value:
            case str():
                new = self.text(value)
                return value if new == value else new
            case msgspec.Struct():
                return self._struct(value)
            case tuple():
                items = cast("tuple[Any, ...]", value)
                new = tuple(map(self._value, items))
                return items if all(a is b for a, b in zip(items, new, strict=True)) else new
            case dict():
                table = cast("dict[str, Any]", value)
                fresh = {self.text(key): self._value(item) for key, item in table.items()}
                return table if fresh == table else fresh
            case _:
                return value

    def _json(self, text: str, hide: Callable[[str], str]) -> str:
        """JSON as it came, unless there is something to hide: in one of its texts, or in a text by its name."""
        try:
            told = msgspec.json.decode(text) if len(text) >= SHORTEST else None
        except (msgspec.DecodeError, UnicodeEncodeError):
            return _same(text, hide(text))
        hidden = _strings(told, hide)
        whole = text if hidden == told else msgspec.json.encode(hidden).decode()
        named = hide(whole)
        return _same(text, named if named == whole or _is_json(named) else whole)

    def signal(self, signal: Signal) -> Signal:
        return self._struct(signal) if self._terms.enabled else signal

    def request(self, request: Request) -> Request:
        """What goes out. All of it comes from the log, where no secret is; but older logs may hold some."""
        if not self._terms.enabled:
            return request
        system, passed = self._outgoing(request.system), self._passed
        if system == request.system and all(id(message) in passed for message in request.messages):
            return request
        messages = tuple(map(self._message, request.messages))
        same = system == request.system and all(a is b for a, b in zip(messages, request.messages, strict=True))
        return request if same else replace(request, system=system, messages=messages)

    def reply(self, reply: Reply) -> Reply:
        """An answer as it will be in the log: what is made of it does not depend on what it was before."""
        return self._struct(reply) if self._terms.enabled else reply

    def _message(self, message: Message) -> Message:
        if id(message) in self._passed:
            return message
        text, reasoning = self._outgoing(message.text), self._outgoing(message.reasoning)
        calls = tuple(map(self._call, message.calls))
        native = message.native
        if native and hash(native.items) not in self._sent and self._json(native.items, self._outgoing) != native.items:
            native = None
        same = text == message.text and reasoning == message.reasoning and native is message.native
        if same and all(a is b for a, b in zip(calls, message.calls, strict=True)):
            if len(self._passed) > REMEMBERED:
                self._passed.clear()
            # Kept with its number, so that no other one can get it.
            self._passed[id(message)] = message
            return message
        return replace(message, text=text, reasoning=reasoning, calls=calls, native=native)

    def _call(self, call: ToolCall) -> ToolCall:
        if hash(call.arguments) in self._sent:
            return call
        arguments = self._json(call.arguments, self._outgoing)
        return call if arguments == call.arguments else replace(call, arguments=arguments)

    def restored(self, text: str) -> str:
        if MARK not in text:
            return text
        vault = self._parts()[1]

        def value(match: Any) -> str:
            entry = vault.get(match[2])
            # What is used is met: it is kept on.
            return vault.put(entry.kind, entry.value).value if entry else match[0]

        return SHAPE.sub(value, text)

    def unveiled(self, fact: F) -> F:
        if MARK.encode() not in msgspec.json.encode(fact):
            return fact
        return msgspec.convert(_strings(msgspec.to_builtins(fact), self.restored), type(fact))

    def arguments(self, arguments: str) -> str:
        if MARK not in arguments:
            return arguments
        try:
            told = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return arguments
        new = _strings(told, self._whole)
        return arguments if new == told else msgspec.json.encode(new).decode()

    def _whole(self, text: str) -> str:
        new = self.restored(text)
        if left := SHAPE.search(new):
            raise ToolError(
                f"The value behind {left[0]} is not known here (any more), so the call was not made.",
                kind="unknown_secret",
                next=[
                    "Get it again from where it came: read the file, or ask the user.",
                    "Do not make up placeholders.",
                ],
            )
        return new


def _remembered(text: str, clean: set[int]) -> str:
    """Nothing is in it: the next time that is known."""
    if len(clean) > REMEMBERED:
        clean.clear()
    clean.add(hash(text))
    return text


def _same(old: str, new: str) -> str:
    """The very same text, where nothing has changed."""
    return old if new == old else new


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _strings(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list() | tuple():
            return [_strings(item, change) for item in cast("Iterable[Any]", value)]
        case dict():
            table = cast("Mapping[Any, Any]", value)
            return {_strings(key, change): _strings(item, change) for key, item in table.items()}
        case _:
            return value


def _variants(terms: Terms) -> dict[str, str]:
    """Each value that is secret wherever it stands, as it is, and as it stands in a URL."""
    from urllib.parse import quote

    from sylph.engine.redact.likely import variable

    found = dict[str, str]()
    named = {value: name for value, name in terms.variables.items() if len(value) >= LONG and variable(value)}
    for value, name in {**named, **terms.literals}.items():
        if len(value) >= SHORTEST:
            found[value] = kind_of(name)
            found.setdefault(quote(value, safe=""), kind_of(name))
    return found
