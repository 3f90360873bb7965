"""The words of a command line: quotes, escapes and expansions, character by character as bash reads them."""

import re
from abc import ABC, abstractmethod

from msgspec import Struct, field

from sylph.tools.shell.judge.syntax_tree import HereDocument, LiteralText, Script, ShellWord, Substitution, Unparsable

DEEP = 40
BLANK = " \t"
META = " \t\n;&|<>()"
_RUN = re.compile(r"[^\s\\'\"`$;&|<>()\r\f\v]+|[\r\f\v]+")
_QUOTED_RUN = re.compile(r"[^\\\"`$]+")
_HERE_RUN = re.compile(r"[^\\`$]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"[0-9@*#?$!_-]")
_SUM = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,.()\[\]#@{}]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CODE = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})")
_OCTAL = re.compile(r"[0-7]{1,3}")


class WordDraft(Struct):
    """A word in the making."""

    parts: list[LiteralText | Substitution] = field(default_factory=list[LiteralText | Substitution])
    scripts: list[Script] = field(default_factory=list[Script])
    sets: list[str] = field(default_factory=list[str])
    sums: list[str] = field(default_factory=list[str])
    odd: str = ""

    def add_text(self, text: str, *, bare: bool = False) -> None:
        last = self.parts[-1] if self.parts else None
        if isinstance(last, LiteralText) and last.bare == bare:
            self.parts[-1] = LiteralText(last.text + text, bare)
        else:
            self.parts.append(LiteralText(text, bare))

    def add_inner(self, word: ShellWord) -> None:
        """What another word inside of this one does when it is expanded."""
        self.scripts += word.scripts
        self.sets += word.sets
        self.sums += word.sums
        self.odd = self.odd or word.odd

    def to_word(self) -> ShellWord:
        return ShellWord(tuple(self.parts), tuple(self.scripts), tuple(self.sets), tuple(self.sums), self.odd)


class WordScanner(ABC):
    """A place in the text, and the words from there on."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > DEEP:
            raise Unparsable("it is nested too deeply")
        self.text = text
        self.at: int = 0
        self.depth: int = depth
        self.here: list[HereDocument] = []

    @abstractmethod
    def parse_script(self, end: str) -> Script:
        """The commands up to `end`, which is consumed."""

    @abstractmethod
    def parse_nested(self, text: str) -> Script:
        """The commands of a text of its own."""

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def starts_with(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.starts_with(text):
            self.at += len(text)
            return True
        return False

    def skip_line_joins(self) -> None:
        """Lines that are continued by a backslash are one."""
        while self.take("\\\n"):
            pass

    def read_word(self, stops: str = META, *, pattern: bool = False) -> ShellWord:
        """The word that begins here. In a `pattern` of [[ ]] parentheses and bars are text."""
        draft = WordDraft()
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "<>" and self.text[self.at + 1 : self.at + 2] == "(" and not pattern and (char in stops):
                self._read_process_substitution(draft)
            elif char in stops:
                break
            else:
                self._read_piece(draft, char)
        return draft.to_word()

    def _read_piece(self, draft: WordDraft, char: str) -> None:
        if char == "\\":
            self._read_escape(draft)
        elif char == "'":
            draft.add_text(self._read_single_quoted())
        elif char == '"':
            self.at += 1
            self._read_double_quoted(draft)
        elif char == "$":
            self._read_dollar(draft, quoted=False)
        elif char == "`":
            self._read_backtick(draft, quoted=False)
        elif found := _RUN.match(self.text, self.at):
            self.at = found.end()
            draft.add_text(found[0], bare=True)
        else:
            # Whatever stands in no list, such as an odd space, is a part of the word for bash.
            self.at += 1
            draft.add_text(char, bare=True)

    def _read_escape(self, draft: WordDraft) -> None:
        if self.at + 1 >= len(self.text):
            raise Unparsable("it ends in a backslash")
        char = self.text[self.at + 1]
        self.at += 2
        if char != "\n":
            draft.add_text(char)

    def _read_single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unparsable("a quote is not closed")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _read_double_quoted(self, draft: WordDraft) -> None:
        draft.add_text("")
        while True:
            if found := _QUOTED_RUN.match(self.text, self.at):
                self.at = found.end()
                draft.add_text(found[0])
            char = self.peek()
            if not char:
                raise Unparsable("a quote is not closed")
            if char == '"':
                self.at += 1
                return
            self._read_in_double(draft, char, escapes='$`"\\')

    def _read_in_double(self, draft: WordDraft, char: str, *, escapes: str) -> None:
        if char == "$":
            self._read_dollar(draft, quoted=True)
        elif char == "`":
            self._read_backtick(draft, quoted=True)
        elif self.take("\\\n"):
            pass
        else:
            following = self.text[self.at + 1 : self.at + 2]
            draft.add_text(following if following and following in escapes else char + following)
            self.at += 1 + len(following)

    def parse_here_body(self, text: str) -> ShellWord:
        """The body of a here-document in which expansions are made."""
        inner = self.sub_scanner(text)
        draft = WordDraft()
        draft.add_text("")
        while inner.at < len(text):
            if found := _HERE_RUN.match(text, inner.at):
                inner.at = found.end()
                draft.add_text(found[0])
            else:
                inner._read_in_double(draft, inner.peek(), escapes="$`\\")
        return draft.to_word()

    @abstractmethod
    def sub_scanner(self, text: str) -> "WordScanner":
        """A scanner like this one for a text of its own."""

    def _read_process_substitution(self, draft: WordDraft) -> None:
        self.at += 2
        draft.scripts.append(self._read_commands())
        # It is replaced by a pipe: reading and writing that touches no file.
        draft.parts.append(LiteralText("/dev/fd/63"))

    def _read_commands(self) -> Script:
        self.depth += 1
        if self.depth > DEEP:
            raise Unparsable("it is nested too deeply")
        waiting, self.here, begin = self.here, [], self.at
        script = self.parse_script(")")
        if waiting and "\n" in self.text[begin : self.at]:
            raise Unparsable("a here-document waits while a line ends")
        self.here = waiting
        self.depth -= 1
        return script

    def _read_dollar(self, draft: WordDraft, *, quoted: bool) -> None:
        begin = self.at
        self.at += 1
        self.skip_line_joins()
        char = self.peek()
        if char == "'" and not quoted:
            draft.add_text(self._read_ansi_quoted())
        elif char == '"' and not quoted:
            self.at += 1
            self._read_double_quoted(draft)
        elif char == "(":
            self._read_parentheses(draft, begin, quoted=quoted)
        elif char == "[":
            self.at += 1
            self._add_arithmetic(draft, self._read_matching("[", "]"))
            draft.parts.append(Substitution(self.text[begin : self.at], bare=not quoted))
        elif char == "{":
            self._read_brace(draft, begin, quoted=quoted)
        elif found := _NAME.match(self.text, self.at) or _SPECIAL.match(self.text, self.at):
            self.at = found.end()
            if self.starts_with("\\\n"):
                raise Unparsable("a line is continued in the name of a variable")
            draft.parts.append(Substitution(f"${found[0]}", found[0], bare=not quoted))
        else:
            draft.add_text("$", bare=not quoted)

    def _read_parentheses(self, draft: WordDraft, begin: int, *, quoted: bool) -> None:
        self.at += 1
        text = self.read_arithmetic()
        if text is not None:
            self._add_arithmetic(draft, text)
        else:
            draft.scripts.append(self._read_commands())
        draft.parts.append(Substitution(self.text[begin : self.at], bare=not quoted))

    def read_arithmetic(self) -> str | None:
        """The sum that follows, if a second parenthesis opens one; None, with nothing consumed, if not."""
        if self.peek() != "(":
            return None
        begin = self.at
        self.at += 1
        text = self._read_matching("(", ")")
        if self.take(")"):
            return text
        self.at = begin
        return None

    def _read_matching(self, opening: str, closing: str) -> str:
        """The text up to the `closing` of what was opened before; consumed with it."""
        begin, level = self.at, 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "'\"\\":
                # Quotes in a sum are rare, and read in different ways by different shells.
                raise Unparsable("there are quotes in a sum")
            level += (char == opening) - (char == closing)
            self.at += 1
            if level == 0:
                return self.text[begin : self.at - 1]
        raise Unparsable("a parenthesis is not closed")

    def _add_arithmetic(self, draft: WordDraft, text: str) -> None:
        inner = self.sub_scanner(text)
        held = WordDraft()
        while inner.at < len(text):
            char = inner.peek()
            if char in "$`":
                inner._read_in_double(held, char, escapes="")
            else:
                held.add_text(char)
                inner.at += 1
        for part in held.parts:
            if isinstance(part, LiteralText) and not _SUM.fullmatch(part.text):
                raise Unparsable("a sum holds something else")
        draft.add_inner(held.to_word())
        draft.sums += re.findall(r"[A-Za-z_]\w*", text)

    def arithmetic_word(self, text: str) -> ShellWord:
        draft = WordDraft()
        self._add_arithmetic(draft, text)
        draft.parts.append(Substitution(text))
        return draft.to_word()

    def _read_ansi_quoted(self) -> str:
        self.at += 1
        out: list[str] = []
        while (char := self.peek()) != "'":
            if not char:
                raise Unparsable("a quote is not closed")
            self.at += 1
            out.append(self._read_ansi_escape() if char == "\\" else char)
        self.at += 1
        return "".join(out).split("\0")[0]

    def _read_ansi_escape(self) -> str:
        char = self.peek()
        if found := _CODE.match(self.text, self.at):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or (found[1] and code > 0x7F):
                raise Unparsable("a quote holds bytes that are no text")
            return chr(code)
        if found := _OCTAL.match(self.text, self.at):
            self.at = found.end()
            if int(found[0], 8) > 0x7F:
                raise Unparsable("a quote holds bytes that are no text")
            return chr(int(found[0], 8))
        if char == "c":
            raise Unparsable("a quote holds a control character")
        self.at += 1
        return _ESCAPES.get(char, char if char in "\\'\"?" else f"\\{char}")

    def _read_backtick(self, draft: WordDraft, *, quoted: bool) -> None:
        begin = self.at
        self.at += 1
        out: list[str] = []
        while (char := self.peek()) != "`":
            if not char:
                raise Unparsable("a backquote is not closed")
            following = self.text[self.at + 1 : self.at + 2]
            escaped = char == "\\" and following and following in ('$`\\"' if quoted else "$`\\")
            out.append(following if escaped else char)
            self.at += 2 if escaped else 1
        self.at += 1
        draft.scripts.append(self.parse_nested("".join(out)))
        draft.parts.append(Substitution(self.text[begin : self.at], bare=not quoted))

    def _read_brace(self, draft: WordDraft, begin: int, *, quoted: bool) -> None:
        """`${…}`: the name, then an operator with words of its own."""
        self.at += 1
        sign = ""
        if self.peek() in ("!", "#") and not self.starts_with("#}") and not self.starts_with("!}"):
            sign = self.peek()
            self.at += 1
        found = _NAME.match(self.text, self.at) or re.compile(r"[0-9]+|[@*#?$!-]").match(self.text, self.at)
        if not found:
            raise Unparsable("an expansion has no name")
        self.at = found.end()
        simple = self.peek() == "}" and not sign
        rest = self._read_brace_rest(draft, quoted=quoted)
        if rest.startswith(("=", ":=")):
            draft.sets.append(found[0])
        if rest.startswith("@") and not re.fullmatch(r"@[QEAaULuKk]", rest):
            draft.odd = "expands a text in a way that can run commands"
        raw = self.text[begin : self.at]
        draft.parts.append(Substitution(raw, found[0] if simple else "", bare=not quoted))

    def _read_brace_rest(self, draft: WordDraft, *, quoted: bool) -> str:
        begin = self.at
        held = WordDraft()
        while (char := self.peek()) != "}":
            if not char:
                raise Unparsable("an expansion is not closed")
            if quoted and char == "'":
                raise Unparsable("an expansion holds quotes that shells read in different ways")
            if quoted and char == "\\":
                self._read_in_double(held, char, escapes='$`"\\}')
            elif char in META:
                held.add_text(char)
                self.at += 1
            else:
                self._read_brace_piece(held, char)
        rest = self.text[begin : self.at]
        self.at += 1
        draft.add_inner(held.to_word())
        return rest

    def _read_brace_piece(self, held: WordDraft, char: str) -> None:
        if char not in "\\'\"$`":
            self.at += 1
            held.add_text(char)
        else:
            self._read_piece(held, char)
