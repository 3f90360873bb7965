"""Walks through a tree of commands as a shell would, and has each one judged where it stands."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, field

from sylph.tools.shell.judge.effects import CommandEffects, cd_targets
from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.parser import DECLARE, parse_command_line
from sylph.tools.shell.judge.program_call import NO_STDIN, ProgramCall, StdinSource
from sylph.tools.shell.judge.programs.registry import handler_for, is_known_program
from sylph.tools.shell.judge.risky_variables import judge_variable
from sylph.tools.shell.judge.syntax_tree import (
    Assignment,
    CommandNode,
    CompoundCommand,
    FunctionDefinition,
    LiteralText,
    Redirection,
    Script,
    ScriptStep,
    ShellPipeline,
    ShellWord,
    SimpleCommand,
    Unparsable,
)
from sylph.tools.shell.judge.word_expansion import ShellArg, expand_value, expand_word

DEEP = 12
MOST = 1000
_HIDDEN = re.compile(r"\$\(|`|\$\{")
_SYSTEM = re.compile(r"/(usr/|usr/local/|opt/homebrew/)?s?bin/[^/]+")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/([^/]*)/.*")


class TreeWalker(Struct):
    effects: CommandEffects
    variables: dict[str, frozenset[str] | None]
    functions: dict[str, CommandNode] = field(default_factory=dict[str, CommandNode])
    hiding: set[str] = field(default_factory=set[str])
    """Variables whose text holds what could be run."""
    running: tuple[str, ...] = ()
    depth: int = 0
    commands: int = 0
    waiting: tuple[str, ...] = ()
    """Where the shell is if the last `cd` fails."""

    def judge_script(self, text: str) -> None:
        """A text that is run as a command line."""
        try:
            if self.depth >= DEEP:
                raise Unparsable("it is nested too deeply")
            script = parse_command_line(text)
        except Unparsable as error:
            self.effects.note("write", "dangerous", f"cannot be read as a command line: {error}")
            return
        self.collect_assignments(script)
        self.depth += 1
        shown = self.effects.current_command
        self.judge_subshell(script)
        self.effects.current_command = shown
        self.depth -= 1

    def collect_assignments(self, script: Script) -> None:
        """What each variable may hold at some time: a loop may use what stands further down."""
        named = dict[str, None]()
        for assign in _assignments_in(script):
            named[assign.name] = None
            held = self.variables.get(assign.name, frozenset[str]())
            given = None if assign.array or len(assign.value) != 1 else expand_value(assign.value[0], self.variables)
            if any(map(_hides_command, assign.value)):
                self.hiding.add(assign.name)
            self.variables[assign.name] = None if held is None or given is None else held | given
        shown = self.effects.current_command
        for name in named:
            held = self.variables[name]
            self.effects.current_command = f"{name}={next(iter(held)) if held and len(held) == 1 else '…'}"
            judge_variable(name, self.variables[name], self.effects)
        self.effects.current_command = shown

    def judge_subshell(self, script: Script, fed: StdinSource = NO_STDIN) -> None:
        """Commands of a shell of their own: its folder and functions are not those of the shell around it."""
        cwds, waiting, functions = self.effects.cwds, self.waiting, dict(self.functions)
        self.judge_steps(script, fed)
        self.effects.cwds, self.waiting, self.functions = cwds, waiting, functions

    def judge_steps(self, script: Script, fed: StdinSource = NO_STDIN) -> None:
        for step in script:
            if step.after != "&&" and self.waiting:
                self._add_possible_cwds(self.waiting)
                self.waiting = ()
            if step.alone:
                self.judge_subshell((ScriptStep(step.node),), fed)
            else:
                self.judge_node(step.node, fed)

    def _add_possible_cwds(self, cwds: tuple[str, ...] | None) -> None:
        """The shell may as well be there."""
        here = self.effects.cwds
        self.effects.cwds = None if here is None or cwds is None else tuple(dict.fromkeys((*here, *cwds)))

    def judge_node(self, node: CommandNode, fed: StdinSource) -> None:
        match node:
            case SimpleCommand():
                self._judge_simple(node, fed)
            case ShellPipeline():
                self._judge_pipeline(node)
            case CompoundCommand():
                self._judge_compound(node, fed)
            case FunctionDefinition():
                self.functions[node.name] = node.body
                cwds, waiting = self.effects.cwds, self.waiting
                self._judge_function(node.name, NO_STDIN)
                self.effects.cwds, self.waiting = cwds, waiting

    def _judge_pipeline(self, node: ShellPipeline) -> None:
        fed = NO_STDIN
        for part in node.parts:
            before = self.effects.external_count
            self.judge_subshell((ScriptStep(part),), fed)
            reached = self.effects.external_count > before or fed.kind == "download"
            fed = StdinSource("download" if reached else "pipe")

    def _judge_compound(self, node: CompoundCommand, fed: StdinSource) -> None:
        for word in node.words:
            self._judge_expansion(word)
        if node.sums:
            self._judge_arithmetic(word.raw for word in node.words)
            if any(map(_hides_command, node.words)):
                self.effects.note("write", "dangerous", "works out a text that hides a command")
        fed = self._judge_redirections(node.redirects) or fed
        if node.kind == "shell":
            self.judge_subshell(node.body, fed)
            return
        cwds, functions = self.effects.cwds, dict(self.functions)
        self.judge_steps(node.body, fed)
        if node.kind == "maybe":
            self._add_possible_cwds(cwds)
            self.functions = functions

    def _judge_arithmetic(self, texts: Iterable[str]) -> None:
        """In a sum the text of a variable is worked out too, and that can run commands."""
        used = {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text)}
        if used & self.hiding:
            self.effects.note("write", "dangerous", "works out a text that hides a command")

    def _judge_simple(self, node: SimpleCommand, fed: StdinSource) -> None:
        for word in (*node.words, *(word for assign in node.assigns for word in _assignment_words(assign))):
            self._judge_expansion(word)
        args = [arg for word in node.words for arg in expand_word(word, self.variables)]
        declares = bool(args) and args[0].exact_text in DECLARE
        self._set_current(args, node.assigns)
        for assign in node.assigns:
            if assign.index is not None:
                self._judge_arithmetic([assign.index.raw])
            if declares and any(map(_hides_command, assign.value)):
                self.effects.note("write", "dangerous", "works out a text that hides a command")
        fed = self._judge_redirections(node.redirects) or fed
        if args:
            self.judge_command(args, fed)
        if (declares or not args) and not node.redirects:
            self.effects.note("read", "safe", "only sets variables")

    def _set_current(self, args: Sequence[ShellArg], assigns: Sequence[Assignment]) -> None:
        texts = [arg.text for arg in args]
        self.effects.current_command = " ".join(texts) if texts else " ".join(f"{each.name}=…" for each in assigns)

    def _judge_expansion(self, word: ShellWord) -> None:
        """What runs while a word is expanded."""
        if word.odd:
            self.effects.current_command = word.raw
            self.effects.note("write", "dangerous", word.odd)
        self._judge_arithmetic(word.sums)
        for script in word.scripts:
            shown = self.effects.current_command
            self.judge_subshell(script)
            self.effects.current_command = shown

    def _judge_redirections(self, redirects: Iterable[Redirection]) -> StdinSource | None:
        fed = None
        for redirect in redirects:
            if redirect.here is not None:
                fed = self._here_stdin(redirect.here.body)
            elif redirect.target is not None:
                fed = self._judge_redirection(redirect.op, redirect.target) or fed
        return fed

    def _here_stdin(self, body: ShellWord | None) -> StdinSource:
        if body is None:
            return StdinSource("text")
        self._judge_expansion(body)
        held = expand_value(body, self.variables)
        return StdinSource("text", next(iter(held)) if held and len(held) == 1 else None)

    def _judge_redirection(self, op: str, target: ShellWord) -> StdinSource | None:
        self._judge_expansion(target)
        for arg in expand_word(target, self.variables):
            if found := _NETWORK.fullmatch(arg.text):
                self.effects.hosts[found[1]] = None
                self.effects.note("external", "dangerous", "opens a connection")
            elif op in ("<", "<&"):
                self.effects.note_read(arg)
            else:
                before = len(self.effects.writes)
                self.effects.note_write(arg, "writes a file")
                if len(self.effects.writes) > before or not arg.known:
                    # So that a rule about the command alone does not let it write everywhere.
                    self.effects.commands[f">{arg.text}"] = None
        return StdinSource("file") if op in ("<", "<&") else None

    def judge_command(self, args: Sequence[ShellArg], fed: StdinSource) -> None:
        """One simple command, whoever runs it."""
        line = " ".join(arg.text for arg in args)
        shown, self.effects.current_command = self.effects.current_command, line
        self.effects.commands[line] = None
        name = args[0].exact_text
        self.commands += 1
        if self.commands > MOST:
            raise Unparsable("there is too much of it")
        if self.depth >= DEEP:
            self.effects.note("write", "dangerous", "is nested too deeply to be read")
        elif name is None:
            self.effects.note("write", "dangerous", "runs a program that only the run can tell")
        elif name in self.functions and not is_known_program(name):
            self._judge_function(name, fed)
        elif name in ("cd", "pushd", "popd"):
            self._change_folder(name, args[1:])
        else:
            if name in self.functions:
                # Whether the function or the program is run depends on more than can be seen here.
                self._judge_function(name, fed)
            self.depth += 1
            self._judge_program(name, tuple(args[1:]), fed)
            self.depth -= 1
        self.effects.current_command = shown

    def _judge_program(self, name: str, args: tuple[ShellArg, ...], fed: StdinSource) -> None:
        base = name
        if "/" in name:
            base = name.rpartition("/")[2]
            if not _SYSTEM.fullmatch(name):
                self.effects.note_read(ShellArg(name))
                self.effects.note("write", "caution", "runs a program of its own")
                if not is_known_program(base):
                    return
        handler_for(base)(ProgramCall(base, args, self.effects, self, fed))

    def _judge_function(self, name: str, fed: StdinSource) -> None:
        if name in self.running:
            self.effects.note("write", "dangerous", "calls itself again and again")
            return
        running, self.running = self.running, (*self.running, name)
        self.judge_node(self.functions[name], fed)
        self.running = running

    def _change_folder(self, name: str, args: Sequence[ShellArg]) -> None:
        given = [arg for arg in args if arg.exact_text not in ("-P", "-L", "-e", "-@", "--", "-n")]
        self.effects.note("read", "safe", "only changes the folder")
        home = str(self.effects.places.home) if self.variables.get("HOME") is not None else None
        target = given[0] if given else ShellArg(home or "", known=home is not None and name == "cd")
        if target.choice or target.text == "-" or name == "popd" or len(given) > 1 or "CDPATH" in self.variables:
            self.effects.cwds = None
            return
        if (self.effects.cwds is None and not target.text.startswith("/")) or not target.is_certain:
            self.effects.cwds = None
            return
        self.effects.note_read(target)
        here = self.effects.cwds or ("/",)
        # A shell goes up by the name it came by, the system by where it is.
        paths = [path for cwd in here for path in cd_targets(cwd, target.text)]
        self.effects.cwds = tuple(dict.fromkeys(paths))
        # A folder that is not there yet: if it cannot be entered, what follows happens here.
        self.waiting = () if all(map(_is_folder, paths)) else here


def _hides_command(word: ShellWord) -> bool:
    """Whether a text stands for itself here, but would run something where it is worked out."""
    return any(isinstance(part, LiteralText) and _HIDDEN.search(part.text) for part in word.parts)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def _assignment_words(assign: Assignment) -> Iterable[ShellWord]:
    yield from assign.value
    if assign.index is not None:
        yield assign.index


def _assignments_in(script: Script) -> Iterable[Assignment]:
    """Every assignment in the script, also those that other commands make."""
    for step in script:
        yield from _assignments_in_node(step.node)


def _assignments_in_node(node: CommandNode) -> Iterable[Assignment]:
    match node:
        case SimpleCommand():
            yield from node.assigns
            for word in (*node.words, *(word for assign in node.assigns for word in assign.value)):
                yield from _assignments_in_word(word)
            yield from _assignments_by_builtin(node.words)
        case ShellPipeline():
            for part in node.parts:
                yield from _assignments_in_node(part)
        case CompoundCommand():
            for word in node.words:
                yield from _assignments_in_word(word)
                if node.name:
                    yield Assignment(node.name, (word,))
            if node.name and not node.words:
                yield Assignment(node.name, ())
            yield from _assignments_in(node.body)
        case FunctionDefinition():
            yield from _assignments_in_node(node.body)


def _assignments_in_word(word: ShellWord) -> Iterable[Assignment]:
    for name in word.sets:
        yield Assignment(name, ())
    for script in word.scripts:
        yield from _assignments_in(script)


_SETTERS = DECLARE | name_set("read mapfile readarray getopts printf let unset")


def _assignments_by_builtin(words: Sequence[ShellWord]) -> Iterable[Assignment]:
    """Commands that give variables a value that is not seen here, also behind `command` and `builtin`."""
    given = [word.raw for word in words]
    while given and given[0] in ("command", "builtin", "--", "-p"):
        given.pop(0)
    if not given or given[0] not in _SETTERS or (given[0] == "printf" and not _stores_variable(given)):
        return
    for text in given[1:]:
        for name in re.findall(r"[A-Za-z_]\w*", text):
            yield Assignment(name, ())


def _stores_variable(given: Sequence[str]) -> bool:
    return len(given) > 1 and given[1].startswith("-v")
