"""The words of a command line: quotes, escapes and expansions, character by character as bash reads them."""

import re
from abc import ABC, abstractmethod

from msgspec import Struct, field

from sylph.tools.command.tree import Here, Hole, Lit, Script, Unparsable, Word

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


class Draft(Struct):
    """A word in the making."""

    parts: list[Lit | Hole] = field(default_factory=list[Lit | Hole])
    scripts: list[Script] = field(default_factory=list[Script])
    sets: list[str] = field(default_factory=list[str])
    sums: list[str] = field(default_factory=list[str])
    odd: str = ""

    def text(self, text: str, *, bare: bool = False) -> None:
        last = self.parts[-1] if self.parts else None
        if isinstance(last, Lit) and last.bare == bare:
            self.parts[-1] = Lit(last.text + text, bare)
        else:
            self.parts.append(Lit(text, bare))

    def inner(self, word: Word) -> None:
        """What another word inside of this one does when it is expanded."""
        self.scripts += word.scripts
        self.sets += word.sets
        self.sums += word.sums
        self.odd = self.odd or word.odd

    def word(self) -> Word:
        return Word(tuple(self.parts), tuple(self.scripts), tuple(self.sets), tuple(self.sums), self.odd)


class Scanner(ABC):
    """A place in the text, and the words from there on."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > DEEP:
            raise Unparsable("it is nested too deeply")
        self.text = text
        self.at: int = 0
        self.depth: int = depth
        self.here: list[Here] = []

    @abstractmethod
    def script(self, end: str) -> Script:
        """The commands up to `end`, which is consumed."""

    @abstractmethod
    def nested(self, text: str) -> Script:
        """The commands of a text of its own."""

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def starts(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.starts(text):
            self.at += len(text)
            return True
        return False

    def join(self) -> None:
        """Lines that are continued by a backslash are one."""
        while self.take("\\\n"):
            pass

    def word(self, stops: str = META, *, pattern: bool = False) -> Word:
        """The word that begins here. In a `pattern` of [[ ]] parentheses and bars are text."""
        draft = Draft()
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "<>" and self.text[self.at + 1 : self.at + 2] == "(" and not pattern and (char in stops):
                self._process(draft)
            elif char in stops:
                break
            else:
                self._piece(draft, char)
        return draft.word()

    def _piece(self, draft: Draft, char: str) -> None:
        if char == "\\":
            self._escape(draft)
        elif char == "'":
            draft.text(self._single())
        elif char == '"':
            self.at += 1
            self._double(draft)
        elif char == "$":
            self._dollar(draft, quoted=False)
        elif char == "`":
            self._backtick(draft, quoted=False)
        elif found := _RUN.match(self.text, self.at):
            self.at = found.end()
            draft.text(found[0], bare=True)
        else:
            # Whatever stands in no list, such as an odd space, is a part of the word for bash.
            self.at += 1
            draft.text(char, bare=True)

    def _escape(self, draft: Draft) -> None:
        if self.at + 1 >= len(self.text):
            raise Unparsable("it ends in a backslash")
        char = self.text[self.at + 1]
        self.at += 2
        if char != "\n":
            draft.text(char)

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unparsable("a quote is not closed")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _double(self, draft: Draft) -> None:
        draft.text("")
        while True:
            if found := _QUOTED_RUN.match(self.text, self.at):
                self.at = found.end()
                draft.text(found[0])
            char = self.peek()
            if not char:
                raise Unparsable("a quote is not closed")
            if char == '"':
                self.at += 1
                return
            self._in_double(draft, char, escapes='$`"\\')

    def _in_double(self, draft: Draft, char: str, *, escapes: str) -> None:
        if char == "$":
            self._dollar(draft, quoted=True)
        elif char == "`":
            self._backtick(draft, quoted=True)
        elif self.take("\\\n"):
            pass
        else:
            following = self.text[self.at + 1 : self.at + 2]
            draft.text(following if following and following in escapes else char + following)
            self.at += 1 + len(following)

    def here_body(self, text: str) -> Word:
        """The body of a here-document in which expansions are made."""
        inner = self.sub(text)
        draft = Draft()
        draft.text("")
        while inner.at < len(text):
            if found := _HERE_RUN.match(text, inner.at):
                inner.at = found.end()
                draft.text(found[0])
            else:
                inner._in_double(draft, inner.peek(), escapes="$`\\")
        return draft.word()

    @abstractmethod
    def sub(self, text: str) -> "Scanner":
        """A scanner like this one for a text of its own."""

    def _process(self, draft: Draft) -> None:
        self.at += 2
        draft.scripts.append(self._commands())
        # It is replaced by a pipe: reading and writing that touches no file.
        draft.parts.append(Lit("/dev/fd/63"))

    def _commands(self) -> Script:
        self.depth += 1
        if self.depth > DEEP:
            raise Unparsable("it is nested too deeply")
        waiting, self.here, begin = self.here, [], self.at
        script = self.script(")")
        if waiting and "\n" in self.text[begin : self.at]:
            raise Unparsable("a here-document waits while a line ends")
        self.here = waiting
        self.depth -= 1
        return script

    def _dollar(self, draft: Draft, *, quoted: bool) -> None:
        begin = self.at
        self.at += 1
        self.join()
        char = self.peek()
        if char == "'" and not quoted:
            draft.text(self._ansi())
        elif char == '"' and not quoted:
            self.at += 1
            self._double(draft)
        elif char == "(":
            self._parentheses(draft, begin, quoted=quoted)
        elif char == "[":
            self.at += 1
            self._sum(draft, self._matching("[", "]"))
            draft.parts.append(Hole(self.text[begin : self.at], bare=not quoted))
        elif char == "{":
            self._brace(draft, begin, quoted=quoted)
        elif found := _NAME.match(self.text, self.at) or _SPECIAL.match(self.text, self.at):
            self.at = found.end()
            if self.starts("\\\n"):
                raise Unparsable("a line is continued in the name of a variable")
            draft.parts.append(Hole(f"${found[0]}", found[0], bare=not quoted))
        else:
            draft.text("$", bare=not quoted)

    def _parentheses(self, draft: Draft, begin: int, *, quoted: bool) -> None:
        self.at += 1
        text = self.arithmetic()
        if text is not None:
            self._sum(draft, text)
        else:
            draft.scripts.append(self._commands())
        draft.parts.append(Hole(self.text[begin : self.at], bare=not quoted))

    def arithmetic(self) -> str | None:
        """The sum that follows, if a second parenthesis opens one; None, with nothing consumed, if not."""
        if self.peek() != "(":
            return None
        begin = self.at
        self.at += 1
        text = self._matching("(", ")")
        if self.take(")"):
            return text
        self.at = begin
        return None

    def _matching(self, opening: str, closing: str) -> str:
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

    def _sum(self, draft: Draft, text: str) -> None:
        inner = self.sub(text)
        held = Draft()
        while inner.at < len(text):
            char = inner.peek()
            if char in "$`":
                inner._in_double(held, char, escapes="")
            else:
                held.text(char)
                inner.at += 1
        for part in held.parts:
            if isinstance(part, Lit) and not _SUM.fullmatch(part.text):
                raise Unparsable("a sum holds something else")
        draft.inner(held.word())
        draft.sums += re.findall(r"[A-Za-z_]\w*", text)

    def sum(self, text: str) -> Word:
        draft = Draft()
        self._sum(draft, text)
        draft.parts.append(Hole(text))
        return draft.word()

    def _ansi(self) -> str:
        self.at += 1
        out: list[str] = []
        while (char := self.peek()) != "'":
            if not char:
                raise Unparsable("a quote is not closed")
            self.at += 1
            out.append(self._ansi_escape() if char == "\\" else char)
        self.at += 1
        return "".join(out).split("\0")[0]

    def _ansi_escape(self) -> str:
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

    def _backtick(self, draft: Draft, *, quoted: bool) -> None:
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
        draft.scripts.append(self.nested("".join(out)))
        draft.parts.append(Hole(self.text[begin : self.at], bare=not quoted))

    def _brace(self, draft: Draft, begin: int, *, quoted: bool) -> None:
        """`${…}`: the name, then an operator with words of its own."""
        self.at += 1
        sign = ""
        if self.peek() in ("!", "#") and not self.starts("#}") and not self.starts("!}"):
            sign = self.peek()
            self.at += 1
        found = _NAME.match(self.text, self.at) or re.compile(r"[0-9]+|[@*#?$!-]").match(self.text, self.at)
        if not found:
            raise Unparsable("an expansion has no name")
        self.at = found.end()
        simple = self.peek() == "}" and not sign
        rest = self._brace_rest(draft, quoted=quoted)
        if rest.startswith(("=", ":=")):
            draft.sets.append(found[0])
        if rest.startswith("@") and not re.fullmatch(r"@[QEAaULuKk]", rest):
            draft.odd = "expands a text in a way that can run commands"
        raw = self.text[begin : self.at]
        draft.parts.append(Hole(raw, found[0] if simple else "", bare=not quoted))

    def _brace_rest(self, draft: Draft, *, quoted: bool) -> str:
        begin = self.at
        held = Draft()
        while (char := self.peek()) != "}":
            if not char:
                raise Unparsable("an expansion is not closed")
            if quoted and char == "'":
                raise Unparsable("an expansion holds quotes that shells read in different ways")
            if quoted and char == "\\":
                self._in_double(held, char, escapes='$`"\\}')
            elif char in META:
                held.text(char)
                self.at += 1
            else:
                self._brace_piece(held, char)
        rest = self.text[begin : self.at]
        self.at += 1
        draft.inner(held.word())
        return rest

    def _brace_piece(self, held: Draft, char: str) -> None:
        if char not in "\\'\"$`":
            self.at += 1
            held.text(char)
        else:
            self._piece(held, char)
