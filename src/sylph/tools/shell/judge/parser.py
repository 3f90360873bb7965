"""Text to a tree of commands. Strict: what bash could read in another way than this is not read at all.

An editor's grammar of bash is made to go on over what it does not understand; it hides commands in `${x#$(…)}` or
in the backquotes of a here-document, and takes other white space for a blank. A judge must rather give up.
"""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.syntax_tree import (
    Assignment,
    CommandNode,
    CompoundCommand,
    FunctionDefinition,
    Redirection,
    Script,
    ScriptStep,
    ShellPipeline,
    ShellWord,
    SimpleCommand,
    Unparsable,
)
from sylph.tools.shell.judge.token_scanner import TokenScanner
from sylph.tools.shell.judge.word_scanner import DEEP, META

LONGEST = 60_000
_FUNCTION = re.compile(r"([^\s'\"\\$`;&|<>()=]+)[ \t]*\([ \t]*\)")
CLOSERS = name_set("then elif else fi do done esac } ]]")
OPENERS = name_set("[[ { if while until for select case")
DECLARE = name_set("declare typeset local export readonly")


def parse_command_line(text: str) -> Script:
    """The commands of `text`. Raises Unparsable."""
    if len(text) > LONGEST:
        raise Unparsable("it is too long")
    if "\0" in text:
        raise Unparsable("it holds a NUL byte")
    return ShellParser(text).parse_script("")


class ShellParser(TokenScanner):
    def parse_nested(self, text: str) -> Script:
        return self.sub_scanner(text).parse_script("")

    def sub_scanner(self, text: str) -> "ShellParser":
        return ShellParser(text, self.depth + 1)

    def parse_script(self, end: str) -> Script:
        """Commands up to `end`: nothing, a parenthesis, or one of the reserved words given with blanks between."""
        steps: list[ScriptStep] = []
        after = ";"
        while True:
            self.skip_blanks(lines=True)
            if self._at_end(end):
                if after in ("&&", "||"):
                    raise Unparsable("a command is missing")
                break
            node = self._parse_pipeline()
            operator = self._read_operator()
            steps.append(ScriptStep(node, after, alone=operator == "&"))
            after = operator
        if self.here and end in ("", ")"):
            raise Unparsable("a here-document is not closed")
        return tuple(steps)

    def _at_end(self, end: str) -> bool:
        if self.at >= len(self.text):
            if end:
                raise Unparsable("something is not closed")
            return True
        if end == ")":
            return self.take(")")
        return bool(end) and self.peek_reserved() in end.split(" ")

    def _read_operator(self) -> str:
        """What stands between this pipeline and the next."""
        self.skip_blanks()
        if self.peek() in ("", ")", "\n") or self.starts_with(";;") or self.starts_with(";&"):
            return ";"
        for operator in ("&&", "||", ";", "&"):
            if self.take(operator):
                return operator
        raise Unparsable("an operator is not where it can be")

    def _parse_pipeline(self) -> CommandNode:
        while (word := self.peek_reserved()) in ("!", "time"):
            self.at += len(word)
            self.skip_blanks()
            if word == "time" and re.compile(r"-p(?=\s)").match(self.text, self.at):
                self.at += 2
                self.skip_blanks()
            if self.peek() in ("", "\n", ";"):
                return SimpleCommand()
        parts = [self._parse_command()]
        while True:
            self.skip_blanks()
            if self.starts_with("||") or not self.take("|"):
                break
            self.take("&")
            self.skip_blanks(lines=True)
            parts.append(self._parse_command())
        return parts[0] if len(parts) == 1 else ShellPipeline(tuple(parts))

    def _parse_command(self) -> CommandNode:
        self.skip_blanks()
        word = self.peek_reserved()
        if word in CLOSERS or (self.peek() in ("", ")", ";", "&", "|") and not self.starts_with("&>")):
            raise Unparsable("a command is missing")
        if found := _FUNCTION.match(self.text, self.at) if not word else None:
            self.at = found.end()
            return self._parse_function(found[1])
        if word == "function":
            return self._parse_named_function()
        if word == "coproc":
            return self._parse_coproc()
        if word in OPENERS or self.peek() == "(":
            return self._with_redirects(self._parse_compound(word))
        if word and word != "in":
            raise Unparsable(f"`{word}` is not where it can be")
        return self._parse_simple()

    def _parse_compound(self, word: str) -> CompoundCommand:
        self.depth += 1
        if self.depth > DEEP:
            raise Unparsable("it is nested too deeply")
        self.at += len(word)
        match word:
            case "":
                block = self._parse_parenthesis()
            case "[[":
                block = self._parse_test()
            case "{":
                block = CompoundCommand("same", self._parse_until("}"))
            case "if":
                block = CompoundCommand("maybe", self._parse_until("fi", "then", "elif", "else"))
            case "while" | "until":
                block = CompoundCommand("maybe", (*self._parse_until("do"), *self._parse_until("done")))
            case "case":
                block = self._parse_case()
            case _:
                block = self._parse_for()
        self.depth -= 1
        return block

    def _parse_until(self, last: str, *more: str) -> Script:
        """Commands up to the reserved word `last`; the words in `more` only divide them."""
        steps: list[ScriptStep] = []
        while True:
            found = self.parse_script(f"{last} {' '.join(more)}".strip())
            if not found:
                raise Unparsable("a command is missing")
            steps += found
            if self.expect_word(last, *more) == last:
                return tuple(steps)

    def _parse_parenthesis(self) -> CompoundCommand:
        self.at += 1
        text = self.read_arithmetic()
        if text is not None:
            return CompoundCommand("same", words=(self.arithmetic_word(text),), sums=True)
        body = self.parse_script(")")
        if not body:
            raise Unparsable("a command is missing")
        return CompoundCommand("shell", body)

    def _parse_test(self) -> CompoundCommand:
        words: list[ShellWord] = []
        pattern = False
        while True:
            self.skip_blanks()
            if self.peek() in ("", ";") or self.here:
                raise Unparsable("`]]` is missing")
            if self.peek_reserved() == "]]" and words:
                self.at += 2
                return CompoundCommand("same", words=tuple(words), sums=True)
            if not pattern and self.peek() in ("\n", "(", ")", "<", ">", "&", "|"):
                self.at += 2 if self.peek(2) in ("&&", "||") else 1
                continue
            begin = self.at
            words.append(self.read_word(" \t\n;&<>" if pattern else META, pattern=pattern))
            if self.at == begin:
                raise Unparsable("a test is not readable")
            pattern = words[-1].bare_text in ("=~", "==", "=", "!=")

    def _parse_for(self) -> CompoundCommand:
        self.skip_blanks()
        if self.take("(("):
            self.at -= 1
            text = self.read_arithmetic()
            if text is None:
                raise Unparsable("a loop is not readable")
            words = tuple(self.arithmetic_word(part) for part in text.split(";"))
            return CompoundCommand("maybe", self._parse_loop_body(), words, sums=True)
        found = re.compile(r"[A-Za-z_]\w*(?=[\s;])").match(self.text, self.at)
        if not found:
            raise Unparsable("a loop has no variable")
        self.at = found.end()
        self.skip_blanks(lines=True)
        words: tuple[ShellWord, ...] = ()
        if self.peek_reserved() == "in":
            self.at += 2
            words = self.read_words()
        return CompoundCommand("maybe", self._parse_loop_body(), words, name=found[0])

    def _parse_loop_body(self) -> Script:
        self.skip_blanks()
        self.take(";")
        self.skip_blanks(lines=True)
        if self.peek_reserved() == "{":
            self.at += 1
            return self._parse_until("}")
        self.expect_word("do")
        return self._parse_until("done")

    def _parse_case(self) -> CompoundCommand:
        self.skip_blanks()
        words = [self.read_word()]
        self.expect_word("in")
        steps: list[ScriptStep] = []
        while True:
            self.skip_blanks(lines=True)
            if self.peek_reserved() == "esac":
                self.at += 4
                return CompoundCommand("maybe", tuple(steps), tuple(words))
            self.take("(")
            words += self._parse_patterns()
            steps += self._parse_case_arm()

    def _parse_patterns(self) -> list[ShellWord]:
        words: list[ShellWord] = []
        while True:
            self.skip_blanks()
            begin = self.at
            words.append(self.read_word())
            if self.at == begin:
                raise Unparsable("a pattern is missing")
            self.skip_blanks()
            if self.take(")"):
                return words
            if not self.take("|"):
                raise Unparsable("a pattern is not closed")

    def _parse_case_arm(self) -> Script:
        """The commands of one case, up to and with what ends it."""
        steps: list[ScriptStep] = []
        after = ";"
        while True:
            self.skip_blanks(lines=True)
            if self.peek_reserved() == "esac":
                return tuple(steps)
            if self.starts_with(";;") or self.starts_with(";&"):
                self.at += 3 if self.starts_with(";;&") else 2
                return tuple(steps)
            node = self._parse_pipeline()
            operator = self._read_operator()
            steps.append(ScriptStep(node, after, alone=operator == "&"))
            after = operator

    def _parse_function(self, name: str) -> FunctionDefinition:
        self.skip_blanks(lines=True)
        word = self.peek_reserved()
        if word not in OPENERS and self.peek() != "(":
            raise Unparsable("a function has no body")
        return FunctionDefinition(name, self._with_redirects(self._parse_compound(word)))

    def _parse_named_function(self) -> FunctionDefinition:
        self.at += len("function")
        self.skip_blanks()
        found = re.compile(r"[^\s'\"\\$`;&|<>()=]+").match(self.text, self.at)
        if not found:
            raise Unparsable("a function has no name")
        self.at = found.end()
        self.skip_blanks()
        if self.take("("):
            self.skip_blanks()
            if not self.take(")"):
                raise Unparsable("a function is not readable")
        return self._parse_function(found[0])

    def _parse_coproc(self) -> CommandNode:
        self.at += len("coproc")
        self.skip_blanks()
        if found := re.compile(r"[A-Za-z_]\w*(?=[ \t]+[{(])").match(self.text, self.at):
            self.at = found.end()
        return CompoundCommand("shell", (ScriptStep(self._parse_command(), alone=True),))

    def _with_redirects(self, block: CompoundCommand) -> CompoundCommand:
        redirects = list[Redirection]()
        while True:
            self.skip_blanks()
            redirect = self.read_redirection()
            if redirect is None:
                break
            redirects.append(redirect)
        return CompoundCommand(block.kind, block.body, block.words, tuple(redirects), block.name, block.sums)

    def _parse_simple(self) -> SimpleCommand:
        words: list[ShellWord] = []
        assigns: list[Assignment] = []
        redirects: list[Redirection] = []
        while True:
            self.skip_blanks()
            if redirect := self.read_redirection():
                redirects.append(redirect)
            elif (not words or words[0].bare_text in DECLARE) and (assign := self.read_assignment()):
                assigns.append(assign)
            elif self.at >= len(self.text) or (self.peek() in META and not self.at_process_substitution()):
                break
            else:
                words.append(self.read_word())
        if self.peek() == "(" or not (words or assigns or redirects):
            raise Unparsable("a parenthesis is not where it can be")
        return SimpleCommand(tuple(words), tuple(assigns), tuple(redirects))
