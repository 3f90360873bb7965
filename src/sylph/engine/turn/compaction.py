"""Compaction: what is old is told in fewer words, all of it, or nothing is dropped."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from sylph.core import facts
from sylph.core.errors import SylphError
from sylph.core.messages import Message
from sylph.core.text.formatting import truncate_middle
from sylph.engine.folds.history import CHARS_PER_TOKEN, ConversationHistory, HistoryEntry, render_recap

SUMMARY_INSTRUCTION = """\
Condense the part of a work session given below, so that somebody who reads only your text can go on with the work.
Keep: what is wanted and any constraint on it; decisions and their reasons; what was tried and what came of it, with
names, paths, numbers and error messages as they are; what is unfinished. Leave out pleasantries and file contents.
Write plain text, at most {words} words. It is part {part} of {parts}."""

LONGEST_QUOTE = 2_000
LEDGER_LINES = 200
WORDS_SHARE = 0.2


class CompactionError(SylphError):
    """Summarising did not work out; nothing may be dropped."""

    kind = "compaction_failed"


class CompactionLimits(Struct, frozen=True, kw_only=True):
    """When to compact and how much of the newest to leave as it is, as shares of the model's window."""

    at: float = 0.75
    keep: float = 0.3


class CompactionRange(NamedTuple):
    """What is to be condensed: everything before the fact `upto`."""

    upto: int
    old: list[HistoryEntry]


Summarizer = Callable[[str, str], Awaitable[str]]
"""Instruction and text in, summary out."""


def needs_compaction(history: ConversationHistory, window: int, squeeze: CompactionLimits) -> bool:
    """Whether it is time; after a failure, not again until the conversation has grown by a twentieth."""
    return history.estimate_tokens() > max(window * squeeze.at, history.refused * 1.05)


def choose_range(history: ConversationHistory, window: int, squeeze: CompactionLimits) -> CompactionRange | None:
    """Where to cut: between whole turns if that frees enough, else between whole rounds; never through a call."""
    budget = window * squeeze.keep * CHARS_PER_TOKEN
    kept, turn_cut, round_cut = 0.0, None, None
    for index in range(len(history.entries) - 1, 0, -1):
        entry = history.entries[index]
        kept += _message_size(entry.message)
        if kept > budget and (turn_cut or round_cut):
            break
        if entry.kind in ("input", "note") and history.entries[index - 1].kind not in ("input", "note"):
            turn_cut = index
        elif entry.kind == "answer":
            round_cut = index
    cut = turn_cut or round_cut
    if not cut:
        return None
    # Notes stand before the message they came after, so the first that is kept need not be the oldest.
    return CompactionRange(min(entry.seq for entry in history.entries[cut:]), history.entries[:cut])


async def compact_history(
    history: ConversationHistory, cut: CompactionRange, window: int, why: str, summarise: Summarizer
) -> facts.CompactionMade:
    """The fact that replaces what was cut. Raises CompactionError rather than lose a word."""
    before = history.estimate_tokens()
    texts = [history.recap_text()] if history.upto else []
    texts += [_render_entry(entry) for entry in cut.old]
    parts = split_chunks(texts, max(window * CHARS_PER_TOKEN // 3, 2_000))
    summaries = [
        await _summarize_part(text, number, len(parts), summarise) for number, text in enumerate(parts, start=1)
    ]
    words = _quote_user_inputs(history, cut, int(window * CHARS_PER_TOKEN * WORDS_SHARE))
    ledger = (*history.ledger, *_list_past_calls(cut.old))[-LEDGER_LINES:]
    summary = "\n\n".join(summaries)
    kept = sum(_message_size(entry.message) for entry in history.entries[len(cut.old) :])
    after = (len(render_recap(words, ledger, summary)) + kept) // CHARS_PER_TOKEN
    if after >= before:
        raise CompactionError(f"The summary is no shorter than what it stands for ({after} of {before} tokens).")
    return facts.CompactionMade(
        upto=cut.upto,
        summary=summary,
        words=words,
        ledger=ledger,
        why=why,
        chunks=len(parts),
        messages=len(cut.old),
        tokens_before=before,
        tokens_after=after,
    )


def split_chunks(texts: list[str], size: int) -> list[str]:
    """`texts` in order as pieces of at most `size` characters. Nothing is left out: that is checked, not hoped."""
    whole = "\n\n".join(texts)
    parts: list[str] = []
    start = 0
    while start < len(whole):
        end = min(start + size, len(whole))
        seam = whole.rfind("\n\n", start + size // 2, end) if end < len(whole) else -1
        end = seam if seam > start else end
        parts.append(whole[start:end])
        start = end
    if "".join(parts) != whole:
        raise CompactionError("The pieces to summarise do not make up the whole.")
    return parts


async def _summarize_part(text: str, number: int, total: int, summarise: Summarizer) -> str:
    words = max(len(text) // 40, 120)
    said = (await summarise(SUMMARY_INSTRUCTION.format(words=words, part=number, parts=total), text)).strip()
    if len(said) < min(40, len(text) // 4):
        raise CompactionError(f"The model gave no usable summary of part {number} of {total}: {said!r}.")
    if len(said) > max(len(text) * 0.7, 1_000):
        raise CompactionError(f"The summary of part {number} of {total} is nearly as long as the part itself.")
    return said


def _render_entry(entry: HistoryEntry) -> str:
    message = entry.message
    calls = "".join(f"\n[call {call.name} {call.arguments}]" for call in message.calls)
    return f"[{'person' if entry.kind == 'input' else entry.kind}] {message.text}{calls}"


def _quote_user_inputs(history: ConversationHistory, cut: CompactionRange, budget: int) -> tuple[str, ...]:
    """What the person said stays in their own words: constraints live there. Only very long ones are trimmed."""
    said = [*history.words, *(entry.message.text for entry in cut.old if entry.kind == "input")]
    limit = LONGEST_QUOTE
    while sum(min(len(text), limit) for text in said) > budget and limit > 80:
        limit //= 2
    return tuple(truncate_middle(text, limit) for text in said)


def _list_past_calls(old: list[HistoryEntry]) -> list[str]:
    """What was done, taken from the calls themselves and not from anybody's memory of them."""
    results = {entry.message.call: entry.message.text for entry in old if entry.kind == "result"}
    lines: list[str] = []
    for entry in old:
        for call in entry.message.calls:
            ending = results.get(call.id, "no result").strip().rpartition("\n")[2]
            lines.append(f"- {call.name} {truncate_middle(call.arguments, 200)} → {truncate_middle(ending, 80)}")
    return lines


def _message_size(message: Message) -> int:
    return len(message.text) + len(msgspec.json.encode(message.calls))
