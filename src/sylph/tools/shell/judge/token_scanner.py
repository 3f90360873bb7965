"""What simple commands are made of, and what stands between them: blanks, redirections, assignments, here-documents."""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.syntax_tree import (
    Assignment,
    HereDocument,
    LiteralText,
    Redirection,
    ShellWord,
    Unparsable,
)
from sylph.tools.shell.judge.word_scanner import BLANK, META, WordScanner

_ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]\s'\"\\]*\])?\+?=")
_REDIRECT = re.compile(r"([0-9]+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)|(&>>|&>)")
_DESCRIPTOR = re.compile(r"[0-9]*-?")
_RESERVED = re.compile(r"[a-z]+|[{}!]|\[\[|\]\]")
RESERVED = name_set("if then elif else fi do done while until for case esac select function time coproc in { } ! [[ ]]")


class TokenScanner(WordScanner):
    def skip_blanks(self, *, lines: bool = False) -> None:
        """Blanks and comments; with `lines` also the ends of lines, and the here-documents after them."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in BLANK or self.starts_with("\\\n"):
                self.at += 2 if char == "\\" else 1
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n" and lines:
                self.at += 1
                self._read_here_documents()
            else:
                return

    def _read_here_documents(self) -> None:
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
            here.body = self.parse_here_body(body) if here.expand else ShellWord((LiteralText(body),))
        self.here.clear()

    def peek_reserved(self) -> str:
        """The reserved word here, if it is one; nothing is consumed."""
        self.skip_line_joins()
        found = _RESERVED.match(self.text, self.at)
        if not found or found[0] not in RESERVED:
            return ""
        end = found.end()
        while self.text.startswith("\\\n", end):
            end += 2
        return found[0] if self.text[end : end + 1] in META else ""

    def expect_word(self, *words: str) -> str:
        self.skip_blanks(lines=True)
        word = self.peek_reserved()
        if word not in words:
            raise Unparsable(f"`{words[0]}` is missing")
        self.at += len(word)
        return word

    def read_words(self) -> tuple[ShellWord, ...]:
        words: list[ShellWord] = []
        while True:
            self.skip_blanks()
            begin = self.at
            word = self.read_word()
            if self.at == begin:
                return tuple(words)
            words.append(word)

    def at_process_substitution(self) -> bool:
        return self.starts_with("<(") or self.starts_with(">(")

    def read_assignment(self) -> Assignment | None:
        found = _ASSIGN.match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        index = self.parse_here_body(found[2]) if found[2] else None
        if self.peek() != "(":
            return Assignment(found[1], (self.read_word(),), index=index)
        self.at += 1
        words: list[ShellWord] = []
        while not self.take(")"):
            self.skip_blanks(lines=True)
            begin = self.at
            words.append(self.read_word())
            self.skip_blanks(lines=True)
            if self.at == begin and self.peek() != ")":
                raise Unparsable("a list of values is not readable")
        return Assignment(found[1], tuple(words), array=True, index=index)

    def read_redirection(self) -> Redirection | None:
        if self.at_process_substitution():
            return None
        found = _REDIRECT.match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        op = found[2] or found[3]
        self.skip_blanks()
        if op in ("<<", "<<-"):
            return self._announce_here_document(tabs=op == "<<-")
        begin = self.at
        word = self.read_word()
        if self.at == begin:
            raise Unparsable("a redirection leads nowhere")
        if op == "<<<":
            return Redirection(op, here=HereDocument("", expand=True, tabs=False, body=word))
        if op in (">&", "<&") and word.bare_text is not None and _DESCRIPTOR.fullmatch(word.bare_text):
            return Redirection(op)
        return Redirection(op, word)

    def _announce_here_document(self, *, tabs: bool) -> Redirection:
        word = self.read_word()
        if any(not isinstance(part, LiteralText) for part in word.parts) or not word.parts:
            raise Unparsable("the end of a here-document is not readable")
        if "\n" in word.raw:
            raise Unparsable("the end of a here-document is not readable")
        self.here.append(HereDocument(word.raw, expand=not word.is_quoted, tabs=tabs))
        return Redirection("<<", here=self.here[-1])
