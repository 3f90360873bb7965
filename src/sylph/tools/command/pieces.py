"""What simple commands are made of, and what stands between them: blanks, redirections, assignments, here-documents."""

import re

from sylph.tools.command.names import names
from sylph.tools.command.scan import BLANK, META, Scanner
from sylph.tools.command.tree import Assign, Here, Lit, Redirect, Unparsable, Word

_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]\s'\"\\]*\])?\+?=")
_REDIRECT = re.compile(r"([0-9]+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)|(&>>|&>)")
_DESCRIPTOR = re.compile(r"[0-9]*-?")
_RESERVED = re.compile(r"[a-z]+|[{}!]|\[\[|\]\]")
RESERVED = names("if then elif else fi do done while until for case esac select function time coproc in { } ! [[ ]]")


class Pieces(Scanner):
    def space(self, *, lines: bool = False) -> None:
        """Blanks and comments; with `lines` also the ends of lines, and the here-documents after them."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in BLANK or self.starts("\\\n"):
                self.at += 2 if char == "\\" else 1
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n" and lines:
                self.at += 1
                self._read_here()
            else:
                return

    def _read_here(self) -> None:
        """The bodies of the here-documents that were announced on the line before."""
        for here in self.here:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    raise Unparsable("a here-document is not closed")
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at += len(line) + 1
                kept = line.lstrip("\t") if here.tabs else line
                if kept == here.mark:
                    break
                if here.expand and line.endswith("\\"):
                    raise Unparsable("a here-document continues a line")
                lines.append(kept)
            body = "".join(f"{line}\n" for line in lines)
            here.body = self.here_body(body) if here.expand else Word((Lit(body),))
        self.here.clear()

    def reserved(self) -> str:
        """The reserved word here, if it is one; nothing is consumed."""
        self.join()
        found = _RESERVED.match(self.text, self.at)
        if not found or found[0] not in RESERVED:
            return ""
        end = found.end()
        while self.text.startswith("\\\n", end):
            end += 2
        return found[0] if self.text[end : end + 1] in META else ""

    def expect(self, *words: str) -> str:
        self.space(lines=True)
        word = self.reserved()
        if word not in words:
            raise Unparsable(f"`{words[0]}` is missing")
        self.at += len(word)
        return word

    def words(self) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self.space()
            begin = self.at
            word = self.word()
            if self.at == begin:
                return tuple(words)
            words.append(word)

    def process_here(self) -> bool:
        return self.starts("<(") or self.starts(">(")

    def assign(self) -> Assign | None:
        found = _ASSIGN.match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        index = self.here_body(found[2]) if found[2] else None
        if self.peek() != "(":
            return Assign(found[1], (self.word(),), index=index)
        self.at += 1
        words: list[Word] = []
        while not self.take(")"):
            self.space(lines=True)
            begin = self.at
            words.append(self.word())
            self.space(lines=True)
            if self.at == begin and self.peek() != ")":
                raise Unparsable("a list of values is not readable")
        return Assign(found[1], tuple(words), array=True, index=index)

    def redirect(self) -> Redirect | None:
        if self.process_here():
            return None
        found = _REDIRECT.match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        op = found[2] or found[3]
        self.space()
        if op in ("<<", "<<-"):
            return self._announce(tabs=op == "<<-")
        begin = self.at
        word = self.word()
        if self.at == begin:
            raise Unparsable("a redirection leads nowhere")
        if op == "<<<":
            return Redirect(op, here=Here("", expand=True, tabs=False, body=word))
        if op in (">&", "<&") and word.plain is not None and _DESCRIPTOR.fullmatch(word.plain):
            return Redirect(op)
        return Redirect(op, word)

    def _announce(self, *, tabs: bool) -> Redirect:
        word = self.word()
        if any(not isinstance(part, Lit) for part in word.parts) or not word.parts:
            raise Unparsable("the end of a here-document is not readable")
        if "\n" in word.raw:
            raise Unparsable("the end of a here-document is not readable")
        self.here.append(Here(word.raw, expand=not word.quoted, tabs=tabs))
        return Redirect("<<", here=self.here[-1])
