"""Walks through a tree of commands as a shell would, and has each one judged where it stands."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, field

from sylph.tools.command.call import NOTHING, Call, Fed
from sylph.tools.command.environment import judge_variable
from sylph.tools.command.expand import Arg, arguments, value
from sylph.tools.command.names import names
from sylph.tools.command.parse import DECLARE, parse
from sylph.tools.command.programs.table import handler, known
from sylph.tools.command.scene import Scene, reached
from sylph.tools.command.tree import (
    Assign,
    Block,
    Function,
    Lit,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Step,
    Unparsable,
    Word,
)

DEEP = 12
MOST = 1000
_HIDDEN = re.compile(r"\$\(|`|\$\{")
_SYSTEM = re.compile(r"/(usr/|usr/local/|opt/homebrew/)?s?bin/[^/]+")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/([^/]*)/.*")


class Walk(Struct):
    scene: Scene
    variables: dict[str, frozenset[str] | None]
    functions: dict[str, Node] = field(default_factory=dict[str, Node])
    hiding: set[str] = field(default_factory=set[str])
    """Variables whose text holds what could be run."""
    running: tuple[str, ...] = ()
    depth: int = 0
    commands: int = 0
    waiting: tuple[str, ...] = ()
    """Where the shell is if the last `cd` fails."""

    def script(self, text: str) -> None:
        """A text that is run as a command line."""
        try:
            if self.depth >= DEEP:
                raise Unparsable("it is nested too deeply")
            script = parse(text)
        except Unparsable as error:
            self.scene.note("write", "dangerous", f"cannot be read as a command line: {error}")
            return
        self.assigned(script)
        self.depth += 1
        shown = self.scene.shown
        self.inner(script)
        self.scene.shown = shown
        self.depth -= 1

    def assigned(self, script: Script) -> None:
        """What each variable may hold at some time: a loop may use what stands further down."""
        named = dict[str, None]()
        for assign in _assigns(script):
            named[assign.name] = None
            held = self.variables.get(assign.name, frozenset[str]())
            given = None if assign.array or len(assign.value) != 1 else value(assign.value[0], self.variables)
            if any(map(_hides, assign.value)):
                self.hiding.add(assign.name)
            self.variables[assign.name] = None if held is None or given is None else held | given
        shown = self.scene.shown
        for name in named:
            held = self.variables[name]
            self.scene.shown = f"{name}={next(iter(held)) if held and len(held) == 1 else '…'}"
            judge_variable(name, self.variables[name], self.scene)
        self.scene.shown = shown

    def inner(self, script: Script, fed: Fed = NOTHING) -> None:
        """Commands of a shell of their own: its folder and functions are not those of the shell around it."""
        cwds, waiting, functions = self.scene.cwds, self.waiting, dict(self.functions)
        self.steps(script, fed)
        self.scene.cwds, self.waiting, self.functions = cwds, waiting, functions

    def steps(self, script: Script, fed: Fed = NOTHING) -> None:
        for step in script:
            if step.after != "&&" and self.waiting:
                self._either(self.waiting)
                self.waiting = ()
            if step.alone:
                self.inner((Step(step.node),), fed)
            else:
                self.node(step.node, fed)

    def _either(self, cwds: tuple[str, ...] | None) -> None:
        """The shell may as well be there."""
        here = self.scene.cwds
        self.scene.cwds = None if here is None or cwds is None else tuple(dict.fromkeys((*here, *cwds)))

    def node(self, node: Node, fed: Fed) -> None:
        match node:
            case Simple():
                self._simple(node, fed)
            case Pipeline():
                self._pipeline(node)
            case Block():
                self._block(node, fed)
            case Function():
                self.functions[node.name] = node.body
                cwds, waiting = self.scene.cwds, self.waiting
                self._body(node.name, NOTHING)
                self.scene.cwds, self.waiting = cwds, waiting

    def _pipeline(self, node: Pipeline) -> None:
        fed = NOTHING
        for part in node.parts:
            before = self.scene.reaches
            self.inner((Step(part),), fed)
            reached = self.scene.reaches > before or fed.kind == "download"
            fed = Fed("download" if reached else "pipe")

    def _block(self, node: Block, fed: Fed) -> None:
        for word in node.words:
            self._expansion(word)
        if node.sums:
            self._sums(word.raw for word in node.words)
            if any(map(_hides, node.words)):
                self.scene.note("write", "dangerous", "works out a text that hides a command")
        fed = self._redirects(node.redirects) or fed
        if node.kind == "shell":
            self.inner(node.body, fed)
            return
        cwds, functions = self.scene.cwds, dict(self.functions)
        self.steps(node.body, fed)
        if node.kind == "maybe":
            self._either(cwds)
            self.functions = functions

    def _sums(self, texts: Iterable[str]) -> None:
        """In a sum the text of a variable is worked out too, and that can run commands."""
        used = {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text)}
        if used & self.hiding:
            self.scene.note("write", "dangerous", "works out a text that hides a command")

    def _simple(self, node: Simple, fed: Fed) -> None:
        for word in (*node.words, *(word for assign in node.assigns for word in _words(assign))):
            self._expansion(word)
        args = [arg for word in node.words for arg in arguments(word, self.variables)]
        declares = bool(args) and args[0].sure in DECLARE
        self._show(args, node.assigns)
        for assign in node.assigns:
            if assign.index is not None:
                self._sums([assign.index.raw])
            if declares and any(map(_hides, assign.value)):
                self.scene.note("write", "dangerous", "works out a text that hides a command")
        fed = self._redirects(node.redirects) or fed
        if args:
            self.run(args, fed)
        if (declares or not args) and not node.redirects:
            self.scene.note("read", "safe", "only sets variables")

    def _show(self, args: Sequence[Arg], assigns: Sequence[Assign]) -> None:
        texts = [arg.text for arg in args]
        self.scene.shown = " ".join(texts) if texts else " ".join(f"{each.name}=…" for each in assigns)

    def _expansion(self, word: Word) -> None:
        """What runs while a word is expanded."""
        if word.odd:
            self.scene.shown = word.raw
            self.scene.note("write", "dangerous", word.odd)
        self._sums(word.sums)
        for script in word.scripts:
            shown = self.scene.shown
            self.inner(script)
            self.scene.shown = shown

    def _redirects(self, redirects: Iterable[Redirect]) -> Fed | None:
        fed = None
        for redirect in redirects:
            if redirect.here is not None:
                fed = self._here(redirect.here.body)
            elif redirect.target is not None:
                fed = self._redirect(redirect.op, redirect.target) or fed
        return fed

    def _here(self, body: Word | None) -> Fed:
        if body is None:
            return Fed("text")
        self._expansion(body)
        held = value(body, self.variables)
        return Fed("text", next(iter(held)) if held and len(held) == 1 else None)

    def _redirect(self, op: str, target: Word) -> Fed | None:
        self._expansion(target)
        for arg in arguments(target, self.variables):
            if found := _NETWORK.fullmatch(arg.text):
                self.scene.hosts[found[1]] = None
                self.scene.note("external", "dangerous", "opens a connection")
            elif op in ("<", "<&"):
                self.scene.read(arg)
            else:
                before = len(self.scene.writes)
                self.scene.write(arg, "writes a file")
                if len(self.scene.writes) > before or not arg.known:
                    # So that a rule about the command alone does not let it write everywhere.
                    self.scene.commands[f">{arg.text}"] = None
        return Fed("file") if op in ("<", "<&") else None

    def run(self, args: Sequence[Arg], fed: Fed) -> None:
        """One simple command, whoever runs it."""
        line = " ".join(arg.text for arg in args)
        shown, self.scene.shown = self.scene.shown, line
        self.scene.commands[line] = None
        name = args[0].sure
        self.commands += 1
        if self.commands > MOST:
            raise Unparsable("there is too much of it")
        if self.depth >= DEEP:
            self.scene.note("write", "dangerous", "is nested too deeply to be read")
        elif name is None:
            self.scene.note("write", "dangerous", "runs a program that only the run can tell")
        elif name in self.functions and not known(name):
            self._body(name, fed)
        elif name in ("cd", "pushd", "popd"):
            self._cd(name, args[1:])
        else:
            if name in self.functions:
                # Whether the function or the program is run depends on more than can be seen here.
                self._body(name, fed)
            self.depth += 1
            self._program(name, tuple(args[1:]), fed)
            self.depth -= 1
        self.scene.shown = shown

    def _program(self, name: str, args: tuple[Arg, ...], fed: Fed) -> None:
        base = name
        if "/" in name:
            base = name.rpartition("/")[2]
            if not _SYSTEM.fullmatch(name):
                self.scene.read(Arg(name))
                self.scene.note("write", "caution", "runs a program of its own")
                if not known(base):
                    return
        handler(base)(Call(base, args, self.scene, self, fed))

    def _body(self, name: str, fed: Fed) -> None:
        if name in self.running:
            self.scene.note("write", "dangerous", "calls itself again and again")
            return
        running, self.running = self.running, (*self.running, name)
        self.node(self.functions[name], fed)
        self.running = running

    def _cd(self, name: str, args: Sequence[Arg]) -> None:
        given = [arg for arg in args if arg.sure not in ("-P", "-L", "-e", "-@", "--", "-n")]
        self.scene.note("read", "safe", "only changes the folder")
        home = str(self.scene.places.home) if self.variables.get("HOME") is not None else None
        target = given[0] if given else Arg(home or "", known=home is not None and name == "cd")
        if target.choice or target.text == "-" or name == "popd" or len(given) > 1 or "CDPATH" in self.variables:
            self.scene.cwds = None
            return
        if (self.scene.cwds is None and not target.text.startswith("/")) or not target.certain:
            self.scene.cwds = None
            return
        self.scene.read(target)
        here = self.scene.cwds or ("/",)
        # A shell goes up by the name it came by, the system by where it is.
        paths = [path for cwd in here for path in reached(cwd, target.text)]
        self.scene.cwds = tuple(dict.fromkeys(paths))
        # A folder that is not there yet: if it cannot be entered, what follows happens here.
        self.waiting = () if all(map(_folder, paths)) else here


def _hides(word: Word) -> bool:
    """Whether a text stands for itself here, but would run something where it is worked out."""
    return any(isinstance(part, Lit) and _HIDDEN.search(part.text) for part in word.parts)


def _folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def _words(assign: Assign) -> Iterable[Word]:
    yield from assign.value
    if assign.index is not None:
        yield assign.index


def _assigns(script: Script) -> Iterable[Assign]:
    """Every assignment in the script, also those that other commands make."""
    for step in script:
        yield from _in_node(step.node)


def _in_node(node: Node) -> Iterable[Assign]:
    match node:
        case Simple():
            yield from node.assigns
            for word in (*node.words, *(word for assign in node.assigns for word in assign.value)):
                yield from _in_word(word)
            yield from _by_builtin(node.words)
        case Pipeline():
            for part in node.parts:
                yield from _in_node(part)
        case Block():
            for word in node.words:
                yield from _in_word(word)
                if node.name:
                    yield Assign(node.name, (word,))
            if node.name and not node.words:
                yield Assign(node.name, ())
            yield from _assigns(node.body)
        case Function():
            yield from _in_node(node.body)


def _in_word(word: Word) -> Iterable[Assign]:
    for name in word.sets:
        yield Assign(name, ())
    for script in word.scripts:
        yield from _assigns(script)


_SETTERS = DECLARE | names("read mapfile readarray getopts printf let unset")


def _by_builtin(words: Sequence[Word]) -> Iterable[Assign]:
    """Commands that give variables a value that is not seen here, also behind `command` and `builtin`."""
    given = [word.raw for word in words]
    while given and given[0] in ("command", "builtin", "--", "-p"):
        given.pop(0)
    if not given or given[0] not in _SETTERS or (given[0] == "printf" and not _stores(given)):
        return
    for text in given[1:]:
        for name in re.findall(r"[A-Za-z_]\w*", text):
            yield Assign(name, ())


def _stores(given: Sequence[str]) -> bool:
    return len(given) > 1 and given[1].startswith("-v")
