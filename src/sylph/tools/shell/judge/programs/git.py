"""git: what each of its commands does, and the many ways it can be told to run something else."""

import re
from collections.abc import Callable

from sylph.core.permission.types import Risk
from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ParsedOptions, ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.word_expansion import ShellArg

_GLOBAL = name_set("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source")
_SAFE_KEYS = re.compile(
    r"color\..*|core\.(quotepath|abbrev|autocrlf|filemode|precomposeunicode|ignorecase|safecrlf|whitespace|longpaths)|user\.(name|email)|advice\..*"
    r"|log\.(date|showsignature|decorate|abbrevcommit)|diff\.(renames|renamelimit|algorithm|context|mnemonicprefix|noprefix|colormoved)|blame\..*"
    r"|init\.defaultbranch|commit\.(gpgsign|verbose)|tag\.gpgsign|merge\.(conflictstyle|ff)|pull\.(rebase|ff)|status\..*|column\..*|i18n\..*|grep\.(linenumber|patterntype)"
)
_LOOK = name_set(
    "status diff log show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file grep"
    " diff-tree diff-index diff-files merge-base"
    " name-rev for-each-ref show-ref show-branch count-objects var version help check-ignore check-attr"
    " check-ref-format whatchanged range-diff cherry fsck"
    " verify-commit verify-tag verify-pack get-tar-commit-id merge-tree patch-id cherry"
)
_RUNNING = name_set(
    "--ext-diff --textconv --open-files-in-pager -O --filters --exec --upload-pack --receive-pack -x --exec-path"
    " --web --browser"
)
_LOOK_VALUES = name_set(
    "-n -S -G -L -U --since --until --after --before --author --grep --format --pretty --max-count --skip --date"
    " --diff-filter -e -A -B -C -m"
)
_CHANGE = name_set(
    "add mv init am apply cherry-pick revert merge notes sparse-checkout mergetool replace worktree commit commit-tree"
    " write-tree read-tree update-index hash-object mktag mktree pack-objects pack-refs repack gc maintenance"
    " format-patch bundle archive stage bisect rerere"
)
_REACH = name_set(
    "fetch pull push clone ls-remote remote-https send-email svn p4 request-pull imap-send fetch-pack send-pack"
    " submodule daemon instaweb lfs annex"
)
_REWRITE = name_set("rebase filter-branch filter-repo fast-import update-ref prune")
_URL = re.compile(r"(?:\w+://)(?:[^/@]*@)?([\w.-]+)|(?:[\w.-]+@)([\w.-]+):")


def judge_git(call: ProgramCall) -> None:
    given = parse_options(call.args, _GLOBAL, leading=True)
    cwds = call.effects.cwds
    for folder in given.values("-C"):
        call.effects.note_read(folder)
        paths = call.effects.resolve_paths(folder)
        call.effects.cwds = None if paths is None else tuple(paths)
    for name, value in given.given:
        _judge_global_option(call, name, value)
    if not given.operands:
        call.note_read_only()
    elif given.unsure or given.operands[0].exact_text is None:
        call.note("write", "dangerous", "runs a command of git that only the run can tell")
    else:
        _judge_command(call, given.operands[0].text, tuple(given.operands[1:]))
    call.effects.cwds = cwds


def _judge_global_option(call: ProgramCall, name: str, value: ShellArg | None) -> None:
    if name in ("-c", "--config-env"):
        key, _, held = (value.text if value else "").partition("=")
        quiet = key.lower() in ("core.pager", "core.editor", "pager.log", "pager.diff") and held in ("", "cat", "true")
        if not value or not value.known or not (_SAFE_KEYS.fullmatch(key.lower()) or quiet):
            call.note("write", "dangerous", f"sets {key or 'something'} of git, which can run another program")
    elif name == "--exec-path" and value:
        call.note("write", "dangerous", "lets git run programs from elsewhere")
    elif name in ("--git-dir", "--work-tree"):
        call.note("write", "caution", "works on a repository with settings of its own")
        if value:
            call.effects.note_read(value)


def _judge_command(call: ProgramCall, name: str, args: tuple[ShellArg, ...]) -> None:
    special = _SPECIAL.get(name)
    if special:
        special(call, args)
    elif name in _LOOK:
        _judge_read(call, name, args)
    elif name in _REACH:
        _judge_network(call, name, args)
    elif name in _REWRITE:
        call.note("write", "dangerous", "rewrites history")
    elif name in _CHANGE:
        call.note("write", "caution", "changes the repository")
    else:
        call.note("write", "caution", "is no command of git itself: an alias or an extension")
    _note_files(call, name, args)


def _note_files(call: ProgramCall, name: str, args: tuple[ShellArg, ...]) -> None:
    """Files that are named behind `--output`, or to commands that take nothing else."""
    given = parse_options(args, name_set("--output -o --output-directory"))
    for value in given.values("--output", "-o", "--output-directory"):
        if name not in ("ls-files", "ls-tree", "grep", "commit", "push", "clone", "fetch", "pull"):
            call.effects.note_write(value, "writes a file")
    if name in ("mv", "apply", "am"):
        for operand in given.operands:
            (call.effects.note_write if name == "mv" else call.effects.note_read)(operand)
    call.effects.note_suspects(operand.text.rpartition(":")[2] for operand in given.operands)
    if name in ("diff", "grep", "show", "blame", "log"):
        for operand in given.operands:
            if operand.text.startswith(("/", "..")) or (operand.text.startswith("$") and not operand.known):
                call.effects.note_read(operand)


def _judge_read(call: ProgramCall, name: str, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, _LOOK_VALUES)
    call.note_read_only()
    if given.unsure:
        call.note("write", "caution", "may be given an option that writes: only the run can tell")
    if any(given.has(each) for each in _RUNNING if not (each in ("-O", "-x") and name != "grep")):
        call.note("write", "dangerous", "lets git run another program")
    if name == "fsck" and given.has("--lost-found"):
        call.note("write", "caution", "writes what it finds")
    if name == "rev-parse" and given.has("--parseopt", "--sq-quote"):
        call.note_read_only()


def _judge_network(call: ProgramCall, name: str, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(
        args,
        name_set(
            "-o -u -b -c -j --upload-pack --receive-pack --config --template --branch --depth --origin --exec"
            " --reference --server-option"
        ),
    )
    call.note("external", "caution", "talks to another machine")
    if given.has("--upload-pack", "--receive-pack", "--exec", "--config", "--template") or (
        name == "clone" and given.has("-u", "-c")
    ):
        call.note("external", "dangerous", "lets git run another program")
    for arg in args:
        if "ext::" in arg.text or "fd::" in arg.text:
            call.note("external", "dangerous", "lets git run another program")
        if found := _URL.match(arg.text):
            call.effects.hosts[found[1] or found[2]] = None
    if name == "push":
        _judge_push(call, given)
    if name == "clone" and len(given.operands) > 1:
        call.effects.note_write(given.operands[1], "copies a repository")
    if name == "submodule" and any(arg.text == "foreach" for arg in args):
        call.note("external", "dangerous", "runs a command in each part of the repository")
    if name == "clone" and given.operands[:1] and given.operands[0].text.startswith(("/", ".")):
        call.effects.note_read(given.operands[0])


def _judge_push(call: ProgramCall, given: ParsedOptions) -> None:
    forced = given.has(
        "-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune", "-d", "--delete"
    )
    refs = given.operands[1:]
    if forced or given.unsure or any(ref.text.startswith(("+", ":")) or not ref.known for ref in refs):
        call.note("external", "dangerous", "overwrites or removes what others have")


def _mixed_handler(
    looking: str, changing: str, losing: str, *, bare: bool = True
) -> Callable[[ProgramCall, tuple[ShellArg, ...]], None]:
    """A command that looks with some words, changes with others, and loses something with a few."""
    look, lose = name_set(looking), name_set(losing)
    taking = name_set("--format --sort --contains --merged --no-merged --points-at -n --max-count")

    def judge(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
        given = parse_options(args, taking)
        first = given.operands[0].text if given.operands else ""
        lost = any(given.has(each) for each in lose if each.startswith("-")) or first in lose
        looks = first in look or any(given.has(each) for each in look if each.startswith("-"))
        if lost or given.unsure:
            call.note("write", "dangerous" if lost else "caution", "throws away what may be nowhere else")
        elif looks or (bare and not given.operands and not _has_changing_options(given)):
            call.note_read_only()
        else:
            call.note("write", "caution", changing)

    return judge


def _has_changing_options(given: ParsedOptions) -> bool:
    quiet = name_set(
        "-a -r -v -vv --all --remotes --verbose -l --list --color --no-color --column --format --sort"
        " --show-current -q --merged --no-merged --contains"
    )
    return any(name not in quiet for name, _ in given.given)


def _judge_checkout(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, name_set("-b -B --orphan --conflict -s --source"))
    paths = any(arg.text in ("--", ".") or arg.pattern for arg in args) or len(given.operands) > 1
    if call.arg_texts() and (given.has("-f", "--force", "--discard-changes", "-B", "-C") or paths or given.unsure):
        call.note("write", "dangerous", "throws away changes that are nowhere else")
    else:
        call.note("write", "caution", "changes the files to another state")


def _judge_restore(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, name_set("-s --source"))
    staged = given.has("--staged", "-S") and not given.has("--worktree", "-W")
    risk: Risk = "caution" if staged and not given.unsure else "dangerous"
    call.note("write", risk, "takes back what was staged" if staged else "throws away changes that are nowhere else")


def _judge_reset(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args)
    hard = given.has("--hard", "--merge", "--keep") or given.unsure
    call.note("write", "dangerous" if hard else "caution", "throws away changes" if hard else "moves what is staged")


def _judge_clean(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, name_set("-e --exclude"))
    if given.has("-n", "--dry-run") and not given.unsure:
        call.note_read_only()
    else:
        call.note("write", "dangerous", "removes files that git does not know")


def _judge_stash(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    first = args[0].text if args else "push"
    if first in ("list", "show"):
        _judge_read(call, "show", args[1:])
    elif first in ("drop", "clear"):
        call.note("write", "dangerous", "throws away what was put aside")
    else:
        call.note("write", "caution", "puts changes aside or brings them back")


def _judge_config(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, name_set("--type --default -f --file --blob"))
    words = [arg.text for arg in given.operands]
    for value in given.values("-f", "--file"):
        call.effects.note_read(value)
    changes = given.has(
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--rename-section",
        "--remove-section",
        "-e",
        "--edit",
        "--global",
        "--system",
    )
    asks = given.has("--get", "--get-all", "--get-regexp", "-l", "--list", "--get-urlmatch") or words[:1] in (
        ["get"],
        ["list"],
    )
    if (asks and not given.has("--unset", "--add", "-e", "--edit") and not given.unsure) or (
        len(words) <= 1 and not changes and not given.unsure
    ):
        call.note_read_only()
    elif words and _SAFE_KEYS.fullmatch(words[0].lower()) and not given.has("--global", "--system"):
        call.note("write", "caution", "changes the settings of git")
    else:
        call.note("write", "dangerous", "changes settings of git that can run other programs")


def _judge_remote(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    first = next((arg.text for arg in args if not arg.text.startswith("-")), "")
    if first in ("update", "prune", "show"):
        _judge_network(call, "remote", args)
    elif first in ("", "get-url") and all(arg.known for arg in args):
        call.note_read_only()
    else:
        _judge_network(call, "remote", args)
        call.note("write", "caution", "changes where the repository is fetched from")


def _judge_rebase(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args)
    call.note(
        "write",
        "dangerous" if not given.has("--abort", "--continue", "--skip", "--quit") else "caution",
        "rewrites history",
    )
    if given.has("-x", "--exec"):
        call.note("write", "dangerous", "runs a command for every commit")


def _judge_bisect(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    call.note("write", "caution", "changes the files to another state")
    if args and args[0].text == "run":
        call.judge_nested(args[1:] or (ShellArg("", known=False),))


def _judge_commit(call: ProgramCall, args: tuple[ShellArg, ...]) -> None:
    given = parse_options(args, name_set("-m -F -C -c -t --message --file --author --date --template"))
    call.note("write", "caution", "rewrites the last commit" if given.has("--amend") else "changes the repository")
    for value in given.values("-F", "--file", "-t", "--template"):
        call.effects.note_read(value)


_SPECIAL: dict[str, Callable[[ProgramCall, tuple[ShellArg, ...]], None]] = {
    "branch": _mixed_handler(
        "--list -l --show-current --contains --merged --no-merged", "changes branches", "-D -d --delete -M -f --force"
    ),
    "tag": _mixed_handler("--list -l --contains -v --verify", "makes a tag", "-d --delete -f --force"),
    "worktree": _mixed_handler("list", "changes working trees", "remove prune", bare=False),
    "reflog": _mixed_handler("show exists", "changes the log of references", "expire delete"),
    "notes": _mixed_handler("list show", "changes notes", "remove prune"),
    "symbolic-ref": _mixed_handler("", "changes a reference", "-d --delete", bare=False),
    "bundle": _mixed_handler("verify list-heads", "writes a bundle", "", bare=False),
    "checkout": _judge_checkout,
    "switch": _judge_checkout,
    "restore": _judge_restore,
    "reset": _judge_reset,
    "clean": _judge_clean,
    "rm": lambda call, args: call.note(
        "write", "dangerous" if any(arg.text in ("-r", "-rf", "-f") for arg in args) else "caution", "removes files"
    ),
    "stash": _judge_stash,
    "config": _judge_config,
    "remote": _judge_remote,
    "rebase": _judge_rebase,
    "bisect": _judge_bisect,
    "commit": _judge_commit,
    "gc": lambda call, args: call.note(
        "write", "dangerous" if any("prune" in arg.text for arg in args) else "caution", "cleans the repository"
    ),
    "difftool": lambda call, _: call.note("write", "caution", "runs another program on files"),
    "mergetool": lambda call, _: call.note("write", "caution", "runs another program on files"),
}
TABLE: dict[str, ProgramHandler] = {"git": judge_git}
