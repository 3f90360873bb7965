"""A unified diff, read strictly: what cannot be understood whole is refused, with the line where that shows."""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from sylph.core.errors import ToolError

DEV_NULL = "/dev/null"
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*|@@(?: (?!-).*)?")
ESCAPE = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)
LETTERS = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
NO_NEWLINE = "\\ "
# Lines between `diff --git` and the first hunk that say nothing we need.
IDLE = ("index ", "similarity index ", "dissimilarity index ")
NAMED = ("rename from ", "rename to ", "copy from ", "copy to ")
MODES = ("old mode ", "new mode ", "new file mode ", "deleted file mode ")

Kind = Literal["modify", "create", "delete", "rename", "copy"]


class PatchHunk(Struct):
    """Lines with their ends. `start` is where the old ones were, None where only they themselves tell."""

    line: int
    start: int | None
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])


class FilePatch(Struct):
    """What is to become of one file."""

    line: int
    old: str
    new: str
    kind: Kind
    mode: int | None = None
    hunks: list[PatchHunk] = field(default_factory=list[PatchHunk])


def parse_patch(text: str) -> list[FilePatch]:
    """The files of a patch; raises ToolError, so that nothing is ever done by half."""
    lines = text.split("\n")
    if any(line.endswith("\r") and line.startswith(("--- ", "@@ -")) for line in lines):
        # Its own lines end so: the patch came through something that turned all of them.
        lines = [line.removesuffix("\r") for line in lines]
    return _PatchReader(lines).read_sections()


class _PatchReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines, self._at = lines, 0

    def read_sections(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        while (line := self._peek_line()) is not None:
            if line.strip() == "":
                self._at += 1
            elif line.startswith("diff --git "):
                found.append(self._read_git_section())
            elif line.startswith("--- "):
                found.append(self._read_plain_section())
            else:
                raise self._syntax_error("a file should begin here with `diff --git` or `---`")
        if not found:
            raise ToolError("The patch is empty.", kind="bad_patch", next=["Give a unified diff."])
        return found

    def _peek_line(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _take_line(self) -> str:
        self._at += 1
        return self._lines[self._at - 1]

    def _read_plain_section(self) -> FilePatch:
        began = self._at + 1
        old, new = self._read_names()
        section = _build_section(began, old, new, {})
        section.hunks = self._read_hunks()
        if not section.hunks:
            raise self._syntax_error("a hunk that begins with @@ is missing")
        return section

    def _read_names(self) -> tuple[str, str]:
        old = _parse_name(self._take_line().removeprefix("--- "))
        line = self._peek_line()
        if line is None or not line.startswith("+++ "):
            raise self._syntax_error("`+++` should follow `---`")
        new = _parse_name(self._take_line().removeprefix("+++ "))
        if old == DEV_NULL:
            return old, new.removeprefix("b/")
        if new == DEV_NULL:
            return old.removeprefix("a/"), new
        prefixed = old.startswith("a/") and new.startswith("b/")
        return (old[2:], new[2:]) if prefixed else (old, new)

    def _read_git_section(self) -> FilePatch:
        began = self._at + 1
        first = self._take_line().removeprefix("diff --git ")
        told = self._read_headers()
        line = self._peek_line()
        if line is not None and line.startswith("--- "):
            old, new = self._read_names()
            section = _build_section(began, old, new, told)
            section.hunks = self._read_hunks()
            if not section.hunks:
                raise self._syntax_error("a hunk that begins with @@ is missing")
            return section
        if "rename from" in told or "copy from" in told:
            return _build_section(began, "", "", told)
        name = _common_name(first)
        if name is None or not told:
            raise ToolError(
                f"Line {began} of the patch: no change of this file follows.", kind="bad_patch", details={"line": began}
            )
        old = DEV_NULL if "new file mode" in told else name
        new = DEV_NULL if "deleted file mode" in told else name
        return _build_section(began, old, new, told)

    def _read_headers(self) -> dict[str, str]:
        told: dict[str, str] = {}
        while (line := self._peek_line()) and not line.startswith(("--- ", "diff --git ")):
            key = next((key for key in (*NAMED, *MODES) if line.startswith(key)), None)
            if key:
                told[key.strip()] = line.removeprefix(key)
            elif line.startswith(("GIT binary patch", "Binary files ")):
                raise self._syntax_error("binary files cannot be patched: copy or write them instead")
            elif not line.startswith(IDLE):
                raise self._syntax_error("this is no line of a diff")
            self._at += 1
        return told

    def _read_hunks(self) -> list[PatchHunk]:
        found: list[PatchHunk] = []
        while (line := self._peek_line()) is not None and line.startswith("@@"):
            match = HUNK.fullmatch(line)
            if not match:
                raise self._syntax_error("this should be like `@@ -1,3 +1,4 @@`, or @@ alone")
            self._at += 1
            found.append(self._read_counted_hunk(match) if match[1] else self._read_bare_hunk())
        return found

    def _read_counted_hunk(self, match: re.Match[str]) -> PatchHunk:
        """A hunk whose header says how long it is: it has to be so long, or something is missing."""
        hunk = PatchHunk(self._at, int(match[1]))
        olds, news = int(match[2] or 1), int(match[4] or 1)
        while len(hunk.old) < olds or len(hunk.new) < news:
            line = self._peek_line()
            if line is None or (line == "" and self._at == len(self._lines) - 1) or not self._add_line(hunk, line):
                raise self._length_error(hunk, olds, news)
        if (len(hunk.old), len(hunk.new)) != (olds, news):
            raise self._length_error(hunk, olds, news)
        self._strip_newline(hunk)
        line = self._peek_line()
        if line and line[0] in " +-" and not line.startswith("--- "):
            raise self._length_error(hunk, olds, news)
        return hunk

    def _read_bare_hunk(self) -> PatchHunk:
        hunk = PatchHunk(self._at, None)
        end = len(self._lines)
        while end > self._at and self._lines[end - 1].strip() == "":
            end -= 1
        while self._at < end and not self._begins_file():
            if not self._add_line(hunk, self._lines[self._at]):
                break
        self._strip_newline(hunk)
        return hunk

    def _begins_file(self) -> bool:
        line, after = self._lines[self._at], self._lines[self._at + 1 : self._at + 2]
        return line.startswith("diff --git ") or (
            line.startswith("--- ") and after[:1] != [] and after[0][:4] == "+++ "
        )

    def _add_line(self, hunk: PatchHunk, line: str) -> bool:
        """Takes a line of the body; False for one that is none."""
        if line.startswith(NO_NEWLINE):
            self._strip_newline(hunk)
            return True
        # Mail programs and models drop the blank of an empty line that stays.
        mark, text = (line[:1], f"{line[1:]}\n") if line.rstrip("\r") else (" ", f"{line}\n")
        if mark not in " +-":
            return False
        if mark in " -":
            hunk.old.append(text)
        if mark in " +":
            hunk.new.append(text)
        self._at += 1
        return True

    def _strip_newline(self, hunk: PatchHunk) -> None:
        """The line before had no newline at its end."""
        line = self._peek_line()
        if line is None or not line.startswith(NO_NEWLINE):
            return
        before = self._lines[self._at - 1]
        self._at += 1
        if before[:1] != "+" and hunk.old:
            hunk.old[-1] = hunk.old[-1].removesuffix("\n")
        if before[:1] != "-" and hunk.new:
            hunk.new[-1] = hunk.new[-1].removesuffix("\n")

    def _length_error(self, hunk: PatchHunk, olds: int, news: int) -> ToolError:
        return ToolError(
            f"The hunk at line {hunk.line} of the patch is not as long as its header says "
            f"(-{olds} +{news}; found -{len(hunk.old)} +{len(hunk.new)} up to line {self._at}).",
            kind="bad_patch",
            details={"line": hunk.line},
            next=["Count its lines again, or write @@ alone as its header: then its lines tell where it goes."],
        )

    def _syntax_error(self, why: str) -> ToolError:
        line = self._peek_line()
        shown = f"{line[:80]!r}: " if line is not None else "the patch ends: "
        return ToolError(
            f"Line {self._at + 1} of the patch, {shown}{why}.", kind="bad_patch", details={"line": self._at + 1}
        )


def _build_section(line: int, old: str, new: str, told: dict[str, str]) -> FilePatch:
    """The names and the kind of a change, which must not contradict each other."""
    kind: Kind = "modify"
    for word in ("rename", "copy"):
        if f"{word} from" in told or f"{word} to" in told:
            kind = "rename" if word == "rename" else "copy"
            named = _parse_name(told.get(f"{word} from", "")), _parse_name(told.get(f"{word} to", ""))
            if not all(named) or (old and (old, new) != named):
                raise _contradiction_error(line, f"says it is a {word}, but its names do not fit")
            old, new = named
    if old == DEV_NULL or new == DEV_NULL or "new file mode" in told or "deleted file mode" in told:
        kind = "create" if old == DEV_NULL else "delete"
        fits = (old == DEV_NULL) != (new == DEV_NULL)
        said = "deleted file mode" if kind == "create" else "new file mode"
        if not fits or said in told:
            raise _contradiction_error(line, "is neither made nor removed, or both")
    elif kind == "modify" and old != new:
        raise _contradiction_error(
            line, f"has two names, {old} and {new}; a rename needs `rename from` and `rename to`"
        )
    mode = told.get("new file mode") or told.get("new mode")
    return FilePatch(line, old, new, kind, _parse_mode(line, mode) if mode else None)


def _parse_mode(line: int, text: str) -> int:
    if text.strip() not in ("100644", "100755"):
        raise _contradiction_error(
            line, f"has the mode {text.strip()}; only plain files (100644, 100755) can be patched"
        )
    return int(text, 8) & 0o777


def _contradiction_error(line: int, why: str) -> ToolError:
    return ToolError(f"The file at line {line} of the patch {why}.", kind="bad_patch", details={"line": line})


def _common_name(rest: str) -> str | None:
    """The name in `a/NAME b/NAME`."""
    if rest.startswith('"'):
        half = rest[: len(rest) // 2]
        names = _parse_name(half), _parse_name(rest[len(rest) // 2 + 1 :])
    else:
        middle = len(rest) // 2
        names = rest[:middle], rest[middle + 1 :]
    old, new = names
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    return old if old == new and old else None


def _parse_name(text: str) -> str:
    """A file's name as diffs write it: odd characters are escaped in quotes, a time may follow a tab."""
    text = text.rstrip("\r")
    if not text.startswith('"'):
        return text.partition("\t")[0]
    body = text[1:].rpartition('"')[0]
    raw = b"".join(_unescape(piece) for piece in re.findall(r"\\[0-7]{3}|\\.|[^\\]+", body))
    return raw.decode("utf-8", "surrogateescape")


def _unescape(piece: str) -> bytes:
    match = ESCAPE.fullmatch(piece)
    if not match:
        return piece.encode("utf-8", "surrogateescape")
    if len(match[1]) == 3:
        return bytes([int(match[1], 8) & 0xFF])
    return LETTERS.get(match[1], match[1]).encode()
