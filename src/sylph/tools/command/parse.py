"""Text to a tree of commands. Strict: what bash could read in another way than this is not read at all.

An editor's grammar of bash is made to go on over what it does not understand; it hides commands in `${x#$(…)}` or
in the backquotes of a here-document, and takes other white space for a blank. A judge must rather give up.
"""

import re

from sylph.tools.command.names import names
from sylph.tools.command.pieces import Pieces
from sylph.tools.command.scan import DEEP, META
from sylph.tools.command.tree import (
    Assign,
    Block,
    Function,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Step,
    Unparsable,
    Word,
)

LONGEST = 60_000
_FUNCTION = re.compile(r"([^\s'\"\\$`;&|<>()=]+)[ \t]*\([ \t]*\)")
CLOSERS = names("then elif else fi do done esac } ]]")
OPENERS = names("[[ { if while until for select case")
DECLARE = names("declare typeset local export readonly")


def parse(text: str) -> Script:
    """The commands of `text`. Raises Unparsable."""
    if len(text) > LONGEST:
        raise Unparsable("it is too long")
    if "\0" in text:
        raise Unparsable("it holds a NUL byte")
    return Parser(text).script("")


class Parser(Pieces):
    def nested(self, text: str) -> Script:
        return self.sub(text).script("")

    def sub(self, text: str) -> "Parser":
        return Parser(text, self.depth + 1)

    def script(self, end: str) -> Script:
        """Commands up to `end`: nothing, a parenthesis, or one of the reserved words given with blanks between."""
        steps: list[Step] = []
        after = ";"
        while True:
            self.space(lines=True)
            if self._ends(end):
                if after in ("&&", "||"):
                    raise Unparsable("a command is missing")
                break
            node = self._pipeline()
            operator = self._operator()
            steps.append(Step(node, after, alone=operator == "&"))
            after = operator
        if self.here and end in ("", ")"):
            raise Unparsable("a here-document is not closed")
        return tuple(steps)

    def _ends(self, end: str) -> bool:
        if self.at >= len(self.text):
            if end:
                raise Unparsable("something is not closed")
            return True
        if end == ")":
            return self.take(")")
        return bool(end) and self.reserved() in end.split(" ")

    def _operator(self) -> str:
        """What stands between this pipeline and the next."""
        self.space()
        if self.peek() in ("", ")", "\n") or self.starts(";;") or self.starts(";&"):
            return ";"
        for operator in ("&&", "||", ";", "&"):
            if self.take(operator):
                return operator
        raise Unparsable("an operator is not where it can be")

    def _pipeline(self) -> Node:
        while (word := self.reserved()) in ("!", "time"):
            self.at += len(word)
            self.space()
            if word == "time" and re.compile(r"-p(?=\s)").match(self.text, self.at):
                self.at += 2
                self.space()
            if self.peek() in ("", "\n", ";"):
                return Simple()
        parts = [self._command()]
        while True:
            self.space()
            if self.starts("||") or not self.take("|"):
                break
            self.take("&")
            self.space(lines=True)
            parts.append(self._command())
        return parts[0] if len(parts) == 1 else Pipeline(tuple(parts))

    def _command(self) -> Node:
        self.space()
        word = self.reserved()
        if word in CLOSERS or (self.peek() in ("", ")", ";", "&", "|") and not self.starts("&>")):
            raise Unparsable("a command is missing")
        if found := _FUNCTION.match(self.text, self.at) if not word else None:
            self.at = found.end()
            return self._function(found[1])
        if word == "function":
            return self._named_function()
        if word == "coproc":
            return self._coproc()
        if word in OPENERS or self.peek() == "(":
            return self._redirected(self._compound(word))
        if word and word != "in":
            raise Unparsable(f"`{word}` is not where it can be")
        return self._simple()

    def _compound(self, word: str) -> Block:
        self.depth += 1
        if self.depth > DEEP:
            raise Unparsable("it is nested too deeply")
        self.at += len(word)
        match word:
            case "":
                block = self._parenthesis()
            case "[[":
                block = self._test()
            case "{":
                block = Block("same", self._until("}"))
            case "if":
                block = Block("maybe", self._until("fi", "then", "elif", "else"))
            case "while" | "until":
                block = Block("maybe", (*self._until("do"), *self._until("done")))
            case "case":
                block = self._case()
            case _:
                block = self._for()
        self.depth -= 1
        return block

    def _until(self, last: str, *more: str) -> Script:
        """Commands up to the reserved word `last`; the words in `more` only divide them."""
        steps: list[Step] = []
        while True:
            found = self.script(f"{last} {' '.join(more)}".strip())
            if not found:
                raise Unparsable("a command is missing")
            steps += found
            if self.expect(last, *more) == last:
                return tuple(steps)

    def _parenthesis(self) -> Block:
        self.at += 1
        text = self.arithmetic()
        if text is not None:
            return Block("same", words=(self.sum(text),), sums=True)
        body = self.script(")")
        if not body:
            raise Unparsable("a command is missing")
        return Block("shell", body)

    def _test(self) -> Block:
        words: list[Word] = []
        pattern = False
        while True:
            self.space()
            if self.peek() in ("", ";") or self.here:
                raise Unparsable("`]]` is missing")
            if self.reserved() == "]]" and words:
                self.at += 2
                return Block("same", words=tuple(words), sums=True)
            if not pattern and self.peek() in ("\n", "(", ")", "<", ">", "&", "|"):
                self.at += 2 if self.peek(2) in ("&&", "||") else 1
                continue
            begin = self.at
            words.append(self.word(" \t\n;&<>" if pattern else META, pattern=pattern))
            if self.at == begin:
                raise Unparsable("a test is not readable")
            pattern = words[-1].plain in ("=~", "==", "=", "!=")

    def _for(self) -> Block:
        self.space()
        if self.take("(("):
            self.at -= 1
            text = self.arithmetic()
            if text is None:
                raise Unparsable("a loop is not readable")
            words = tuple(self.sum(part) for part in text.split(";"))
            return Block("maybe", self._loop_body(), words, sums=True)
        found = re.compile(r"[A-Za-z_]\w*(?=[\s;])").match(self.text, self.at)
        if not found:
            raise Unparsable("a loop has no variable")
        self.at = found.end()
        self.space(lines=True)
        words: tuple[Word, ...] = ()
        if self.reserved() == "in":
            self.at += 2
            words = self.words()
        return Block("maybe", self._loop_body(), words, name=found[0])

    def _loop_body(self) -> Script:
        self.space()
        self.take(";")
        self.space(lines=True)
        if self.reserved() == "{":
            self.at += 1
            return self._until("}")
        self.expect("do")
        return self._until("done")

    def _case(self) -> Block:
        self.space()
        words = [self.word()]
        self.expect("in")
        steps: list[Step] = []
        while True:
            self.space(lines=True)
            if self.reserved() == "esac":
                self.at += 4
                return Block("maybe", tuple(steps), tuple(words))
            self.take("(")
            words += self._patterns()
            steps += self._arm()

    def _patterns(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self.space()
            begin = self.at
            words.append(self.word())
            if self.at == begin:
                raise Unparsable("a pattern is missing")
            self.space()
            if self.take(")"):
                return words
            if not self.take("|"):
                raise Unparsable("a pattern is not closed")

    def _arm(self) -> Script:
        """The commands of one case, up to and with what ends it."""
        steps: list[Step] = []
        after = ";"
        while True:
            self.space(lines=True)
            if self.reserved() == "esac":
                return tuple(steps)
            if self.starts(";;") or self.starts(";&"):
                self.at += 3 if self.starts(";;&") else 2
                return tuple(steps)
            node = self._pipeline()
            operator = self._operator()
            steps.append(Step(node, after, alone=operator == "&"))
            after = operator

    def _function(self, name: str) -> Function:
        self.space(lines=True)
        word = self.reserved()
        if word not in OPENERS and self.peek() != "(":
            raise Unparsable("a function has no body")
        return Function(name, self._redirected(self._compound(word)))

    def _named_function(self) -> Function:
        self.at += len("function")
        self.space()
        found = re.compile(r"[^\s'\"\\$`;&|<>()=]+").match(self.text, self.at)
        if not found:
            raise Unparsable("a function has no name")
        self.at = found.end()
        self.space()
        if self.take("("):
            self.space()
            if not self.take(")"):
                raise Unparsable("a function is not readable")
        return self._function(found[0])

    def _coproc(self) -> Node:
        self.at += len("coproc")
        self.space()
        if found := re.compile(r"[A-Za-z_]\w*(?=[ \t]+[{(])").match(self.text, self.at):
            self.at = found.end()
        return Block("shell", (Step(self._command(), alone=True),))

    def _redirected(self, block: Block) -> Block:
        redirects = list[Redirect]()
        while True:
            self.space()
            redirect = self.redirect()
            if redirect is None:
                break
            redirects.append(redirect)
        return Block(block.kind, block.body, block.words, tuple(redirects), block.name, block.sums)

    def _simple(self) -> Simple:
        words: list[Word] = []
        assigns: list[Assign] = []
        redirects: list[Redirect] = []
        while True:
            self.space()
            if redirect := self.redirect():
                redirects.append(redirect)
            elif (not words or words[0].plain in DECLARE) and (assign := self.assign()):
                assigns.append(assign)
            elif self.at >= len(self.text) or (self.peek() in META and not self.process_here()):
                break
            else:
                words.append(self.word())
        if self.peek() == "(" or not (words or assigns or redirects):
            raise Unparsable("a parenthesis is not where it can be")
        return Simple(tuple(words), tuple(assigns), tuple(redirects))
