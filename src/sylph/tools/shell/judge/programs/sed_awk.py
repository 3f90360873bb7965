"""Filters with a language of their own: sed and awk."""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.word_expansion import ShellArg

_ADDRESS = re.compile(
    r"\s*(?:\d+(?:~\d+)?|\$|/(?:\\.|\[[^\]]*\]|[^/\\\n\[])*/[IM]*)(?:\s*,\s*[+~]?(?:\d+|\$|/(?:\\.|\[[^\]]*\]|[^/\\\n\[])*/[IM]*))?\s*!?\s*"
)
_PLAIN = re.compile(r"[pPdDgGhHxnN=lFzqQ]\s*\d*\s*(?=[;}\n]|$)|[bt:T]\s*[\w.]*\s*(?=[;}\n]|$)")
_TEXT = re.compile(r"[aic]\\?[^\n]*(?=\n|$)")
_FLAGS = re.compile(r"[gpiIM0-9m]*\s*(?=[;}\n]|$)")
_FILE = re.compile(r"[rR]\s+([^\n;}]+)(?=\n|$)")
_SHAPED = re.compile(r"[;\s{}]+")


def judge_sed(call: ProgramCall) -> None:
    taking = name_set("-e -f -l --expression --file --line-length")
    given = parse_options(_normalize_inplace(call.args), taking)
    scripts = given.values("-e", "--expression")
    files = given.operands
    if not scripts and not given.has("-f", "--file"):
        scripts, files = given.operands[:1], given.operands[1:]
    call.note_read_only()
    harmless = not given.unsure and all(
        script.exact_text is not None and sed_only_prints(script.text, call) for script in scripts
    )
    if given.has("-f", "--file") or not harmless:
        call.note("write", "caution", "may write or run more than can be seen here")
    if any(script.exact_text and _runs_commands(script.text) for script in scripts):
        call.note("write", "dangerous", "runs commands out of a filter")
    inplace = given.has("-i", "--in-place")
    for file in files:
        if inplace:
            call.effects.note_write(file, "changes files in place")
        elif file.text != "-":
            call.effects.note_read(file)
    if inplace:
        call.note("write", "caution", "changes files in place")


def _normalize_inplace(args: tuple[ShellArg, ...]) -> list[ShellArg]:
    """`-i.bak` is the option -i; its letters are no options."""
    return [ShellArg("-i") if arg.is_certain and re.match(r"-[nErsz]*i", arg.text) else arg for arg in args]


def _runs_commands(script: str) -> bool:
    return bool(re.search(r"(^|[;{}\n\d$/!])\s*e\b|/[gpiIM0-9m]*e[gpiIM0-9m]*\s*($|[;}\n])", script))


def sed_only_prints(script: str, call: ProgramCall) -> bool:
    """Whether a sed script surely does nothing but print."""
    at = 0
    while at < len(script):
        begin = at
        if found := _SHAPED.match(script, at) or _ADDRESS.match(script, at):
            at = found.end()
        elif script[at] == "#":
            at = len(script) if "\n" not in script[at:] else script.index("\n", at)
        elif script[at] in "sy":
            at = _skip_substitution(script, at)
        elif found := _FILE.match(script, at):
            call.effects.note_read(ShellArg(found[1].strip()))
            at = found.end()
        elif found := _PLAIN.match(script, at) or _TEXT.match(script, at):
            at = found.end()
        if at <= begin:
            return False
    return True


def _skip_substitution(script: str, at: int) -> int:
    """Behind `s/…/…/flags`; -1 where it could do more than replace."""
    mark = script[at + 1 : at + 2]
    if not mark or mark.isalnum() or mark in "\\\n ":
        return -1
    end = at + 2
    for _ in range(2):
        while end < len(script) and script[end] != mark:
            if script[end] == "[" and mark in script[end:]:
                # A set may hold the mark: shells and versions differ, so only plain sets are read.
                close = script.find("]", end + 2)
                if close > 0 and mark in script[end:close]:
                    return -1
            end += 2 if script[end] == "\\" else 1
        end += 1
    if end > len(script):
        return -1
    flags = _FLAGS.match(script, end)
    return flags.end() if flags else -1


def judge_awk(call: ProgramCall) -> None:
    taking = name_set("-F -v -f -i -l -E --field-separator --assign --file --include --load --exec --source -e")
    given = parse_options(call.args, taking, leading=True)
    programs = given.values("-e", "--source")
    operands = given.operands
    call.note_read_only()
    if given.has("-f", "--file", "-i", "--include", "-l", "--load", "-E", "--exec") or given.unsure:
        call.note("write", "caution", "runs a program that cannot be seen here")
    elif not programs:
        programs, operands = operands[:1], operands[1:]
    for program in programs:
        _judge_awk_program(call, program)
    if given.has("-o", "-p", "-d", "--dump-variables", "--pretty-print", "--profile"):
        call.note("write", "caution", "writes a file")
    for operand in operands:
        if not re.match(r"[A-Za-z_]\w*=", operand.text):
            call.effects.note_read(operand)


def _judge_awk_program(call: ProgramCall, program: ShellArg) -> None:
    text = program.exact_text
    if text is None:
        call.note("write", "caution", "runs a program that only the run can tell")
    elif re.search(r"\bsystem\s*\(|\|&?\s*getline|\|\s*\"", text):
        call.note("write", "dangerous", "runs commands out of a filter")
    elif re.search(r"\b(system|getline|ARGV|ARGC|ENVIRON)\b|@", text) or _prints_elsewhere(text):
        call.note("write", "caution", "may write or run more than can be seen here")


def _prints_elsewhere(text: str) -> bool:
    """Whether something is printed into a file or another program: any > or | behind a print may be that."""
    if "/" not in text:
        text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    _, printed, rest = text.partition("print")
    return bool(printed) and bool(re.search(r">|(?<!\|)\|(?!\|)", rest))


TABLE: dict[str, ProgramHandler] = {
    "sed": judge_sed,
    "gsed": judge_sed,
    "awk": judge_awk,
    "gawk": judge_awk,
    "mawk": judge_awk,
    "nawk": judge_awk,
}
