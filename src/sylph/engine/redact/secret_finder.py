"""Where secrets stand in a text. Most texts hold none, and that is found out in one pass."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from sylph.core.errors import UserError
from sylph.engine.redact import pem
from sylph.engine.redact.patterns import (
    ADDRESSES,
    ASSIGNED,
    ASSIGNMENT_BEFORE,
    CARDS,
    EMAILS,
    ENTROPY,
    KEYS,
    URLS,
    SecretPattern,
)
from sylph.engine.redact.policy import RedactionPolicy

# After so many characters RE2 is loaded, which takes 10 to 20 ms; whoever says little does without it.
MUCH = 20_000
# What a short text costs without it, as if it were so much longer.
TEXT_OVERHEAD = 150
# How far from a hint a secret can begin and end.
BEFORE, AFTER = 300, 20_000
MEMORY = 64_000_000
# What stands right before or after a card number that is only a part of something longer.
_PART = frozenset(".,-_+/=")
# In too many lines to make one suspect; a card number begins with more than one figure.
_COMMON = frozenset(".3456@2")
_DIGITS = re.compile(r"\d{3}")
# A hint of one or two characters is in every line.
SHORT = 3
AFTER_HINT = 600
# So much before a value can be its name.
NAME = 60
_GIVEN = re.compile(ASSIGNMENT_BEFORE, re.ASCII)
_NONE: Mapping[str, str] = {}


class SecretMatch(NamedTuple):
    start: int
    end: int
    kind: str


class SecretFinder:
    def __init__(self, terms: RedactionPolicy) -> None:
        opted = ((terms.email, EMAILS), (terms.ip, ADDRESSES), (terms.entropy, ENTROPY))
        own = tuple(SecretPattern(name, regex, ("",)) for name, regex in terms.patterns.items())
        chosen = (*KEYS, *URLS, *ASSIGNED, *CARDS, *own, *(each for wanted, table in opted if wanted for each in table))
        self._patterns: Sequence[SecretPattern] = chosen
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._allowed = [_compile_setting("allow", each) for each in terms.allow]
        for name, regex in terms.patterns.items():
            _compile_setting(f"patterns.{name}", regex)
        self._hints = dict.fromkeys(pattern.hints for pattern in chosen)
        self._seen = 0
        self._set: Any = None
        self._unset = False

    def find_secrets(
        self, text: str, literals: Mapping[str, str], assigned: Mapping[str, str] = _NONE
    ) -> list[SecretMatch]:
        """Every secret in `text`, in order, none inside of another.

        `literals` are values and what they are; `assigned` are such that count only where a name is given them.
        """
        given = (each for each in _find_literals(text, assigned) if _is_assigned(text, each))
        found = [*_find_literals(text, literals), *given, *self._match_patterns(text)]
        if pem.HINT in text:
            found += [SecretMatch(start, end, pem.KIND) for start, end in pem.find_key_lines(text)]
        kept = (each for each in found if not self._is_allowed(text[each.start : each.end]))
        return _resolve_overlaps(kept)

    def hints_at_secret(self, text: str) -> bool:
        """Whether something in it hints at a secret that may follow."""
        low = text.lower()
        return bool(_DIGITS.search(text)) or any(
            _has_hint(text, low, hint) for hints in self._hints for hint in hints if hint not in _COMMON
        )

    def _match_patterns(self, text: str) -> Iterator[SecretMatch]:
        low = text.lower()
        windows: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        for number in self._candidate_patterns(text, low):
            pattern, regex = self._patterns[number], self._compiled_regex(number)
            if pattern.hints not in windows:
                windows[pattern.hints] = _hint_windows(text, low, pattern.hints)
            for start, end in windows[pattern.hints]:
                for match in regex.finditer(text, start, end):
                    found = SecretMatch(*match.span(1 if regex.groups else 0), pattern.name)
                    value = text[found.start : found.end]
                    if value and pattern.check(value) and not (pattern.name == "card" and _is_partial(text, found)):
                        yield found

    def _compiled_regex(self, number: int) -> re.Pattern[str]:
        if number not in self._compiled:
            self._compiled[number] = re.compile(self._patterns[number].regex, re.ASCII)
        return self._compiled[number]

    def _candidate_patterns(self, text: str, low: str) -> Iterable[int]:
        """Which patterns may be in the text."""
        self._seen += len(text) + TEXT_OVERHEAD
        if self._seen >= MUCH and (found := self._load_prefilter()) is not None:
            seen = found.Match(text.encode("utf-8", "replace")) or ()
            # The last one is in every text: without it RE2 has given up for want of memory.
            if len(self._patterns) in seen:
                return sorted(number for number in seen if number < len(self._patterns))
        hinted = {hints: any(_has_hint(text, low, hint) for hint in hints) for hints in self._hints}
        return [number for number, pattern in enumerate(self._patterns) if hinted[pattern.hints]]

    def _load_prefilter(self) -> Any:
        """All patterns in one automaton; None where RE2 is not to be had."""
        if self._set is None and not self._unset:
            self._unset = True
            with suppress(ImportError):
                self._set = build_prefilter(self._patterns)
        return self._set

    def _is_allowed(self, value: str) -> bool:
        return any(allowed.fullmatch(value) for allowed in self._allowed)


def build_prefilter(patterns: Sequence[SecretPattern]) -> Any:
    """RE2 with all patterns in one automaton, and one more that is in every text."""
    re2: Any = import_module("re2")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem, options.never_capture, options.log_errors = MEMORY, True, False
    found: Any = re2.Set.SearchSet(options)
    for pattern in patterns:
        # How long a secret may be at the most does not matter here, and costs the automaton states.
        probe = re.sub(r"\{(\d+),\d+\}", r"{\1,}", pattern.regex)
        try:
            found.Add(probe if probe.isascii() else "")
        except re2.error:
            found.Add("")  # A user's own pattern that only `re` can read is always looked for.
    found.Add("")
    found.Compile()
    return found


def _compile_setting(key: str, regex: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(regex, re.ASCII)
    except re.error as error:
        raise UserError(
            f"redact.{key}: {regex!r} is no regular expression: {error}.", kind="config", next=["sylph config edit"]
        ) from error
    if compiled.match("") and key != "allow":
        raise UserError(
            f"redact.{key}: {regex!r} matches nothing at all, everywhere.", kind="config", next=["sylph config edit"]
        )
    return compiled


def _find_literals(text: str, literals: Mapping[str, str]) -> Iterator[SecretMatch]:
    for value, kind in literals.items():
        at = text.find(value)
        while at >= 0:
            yield SecretMatch(at, at + len(value), kind)
            at = text.find(value, at + len(value))


def _is_assigned(text: str, found: SecretMatch) -> bool:
    """Whether a whole value stands behind a name that calls it secret."""
    goes_on = text[found.end : found.end + 1]
    before = text[max(0, found.start - NAME) : found.start]
    return not (goes_on.isalnum() or goes_on == "_") and bool(_GIVEN.search(before))


def _has_hint(text: str, low: str, hint: str) -> bool:
    return hint in (low if hint.islower() else text)


def _hint_windows(text: str, low: str, hints: Sequence[str]) -> list[tuple[int, int]]:
    """The lines that hold a hint, as much of them as matters; all of the text where hints are too common."""
    if any(len(hint) < SHORT for hint in hints) or len(low) != len(text):
        return [(0, len(text))]
    spots: list[int] = []
    for hint in hints:
        where = low if hint.islower() else text
        at = where.find(hint)
        while at >= 0:
            spots.append(at)
            at = where.find(hint, at + len(hint))
    found: list[tuple[int, int]] = []
    for at in sorted(spots):
        if found and at + AFTER_HINT < found[-1][1]:
            continue
        start = max(text.rfind("\n", 0, at) + 1, at - BEFORE)
        line = text.find("\n", at)
        end = min(line + 1 if line >= 0 else len(text), at + AFTER)
        if found and start <= found[-1][1]:
            start = found.pop()[0]
        found.append((start, end))
    return found


def _is_partial(text: str, found: SecretMatch) -> bool:
    """Whether a number is only a part of something longer."""
    before, after = text[found.start - 1 : found.start], text[found.end : found.end + 2]
    return before in _PART or (after[:1] in _PART and after[1:].isalnum())


def _resolve_overlaps(found: Iterable[SecretMatch]) -> list[SecretMatch]:
    """Of those that overlap, the longer one."""
    kept: list[SecretMatch] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if kept and each.start < kept[-1].end:
            if each.end - each.start > kept[-1].end - kept[-1].start:
                kept[-1] = each
            continue
        kept.append(each)
    return kept
