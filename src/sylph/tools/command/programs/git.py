"""git: what each of its commands does, and the many ways it can be told to run something else."""

import re
from collections.abc import Callable

from sylph.core.facts import Risk
from sylph.tools.command.call import Call, Handler, Options, options
from sylph.tools.command.expand import Arg
from sylph.tools.command.names import names

_GLOBAL = names("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source")
_SAFE_KEYS = re.compile(
    r"color\..*|core\.(quotepath|abbrev|autocrlf|filemode|precomposeunicode|ignorecase|safecrlf|whitespace|longpaths)|user\.(name|email)|advice\..*"
    r"|log\.(date|showsignature|decorate|abbrevcommit)|diff\.(renames|renamelimit|algorithm|context|mnemonicprefix|noprefix|colormoved)|blame\..*"
    r"|init\.defaultbranch|commit\.(gpgsign|verbose)|tag\.gpgsign|merge\.(conflictstyle|ff)|pull\.(rebase|ff)|status\..*|column\..*|i18n\..*|grep\.(linenumber|patterntype)"
)
_LOOK = names(
    "status diff log show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree cat-file grep"
    " diff-tree diff-index diff-files merge-base"
    " name-rev for-each-ref show-ref show-branch count-objects var version help check-ignore check-attr"
    " check-ref-format whatchanged range-diff cherry fsck"
    " verify-commit verify-tag verify-pack get-tar-commit-id merge-tree patch-id cherry"
)
_RUNNING = names(
    "--ext-diff --textconv --open-files-in-pager -O --filters --exec --upload-pack --receive-pack -x --exec-path"
    " --web --browser"
)
_LOOK_VALUES = names(
    "-n -S -G -L -U --since --until --after --before --author --grep --format --pretty --max-count --skip --date"
    " --diff-filter -e -A -B -C -m"
)
_CHANGE = names(
    "add mv init am apply cherry-pick revert merge notes sparse-checkout mergetool replace worktree commit commit-tree"
    " write-tree read-tree update-index hash-object mktag mktree pack-objects pack-refs repack gc maintenance"
    " format-patch bundle archive stage bisect rerere"
)
_REACH = names(
    "fetch pull push clone ls-remote remote-https send-email svn p4 request-pull imap-send fetch-pack send-pack"
    " submodule daemon instaweb lfs annex"
)
_REWRITE = names("rebase filter-branch filter-repo fast-import update-ref prune")
_URL = re.compile(r"(?:\w+://)(?:[^/@]*@)?([\w.-]+)|(?:[\w.-]+@)([\w.-]+):")


def git(call: Call) -> None:
    given = options(call.args, _GLOBAL, leading=True)
    cwds = call.scene.cwds
    for folder in given.values("-C"):
        call.scene.read(folder)
        paths = call.scene.paths(folder)
        call.scene.cwds = None if paths is None else tuple(paths)
    for name, value in given.given:
        _global(call, name, value)
    if not given.operands:
        call.looks()
    elif given.unsure or given.operands[0].sure is None:
        call.note("write", "dangerous", "runs a command of git that only the run can tell")
    else:
        _command(call, given.operands[0].text, tuple(given.operands[1:]))
    call.scene.cwds = cwds


def _global(call: Call, name: str, value: Arg | None) -> None:
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
            call.scene.read(value)


def _command(call: Call, name: str, args: tuple[Arg, ...]) -> None:
    special = _SPECIAL.get(name)
    if special:
        special(call, args)
    elif name in _LOOK:
        _look(call, name, args)
    elif name in _REACH:
        _reach(call, name, args)
    elif name in _REWRITE:
        call.note("write", "dangerous", "rewrites history")
    elif name in _CHANGE:
        call.note("write", "caution", "changes the repository")
    else:
        call.note("write", "caution", "is no command of git itself: an alias or an extension")
    _files(call, name, args)


def _files(call: Call, name: str, args: tuple[Arg, ...]) -> None:
    """Files that are named behind `--output`, or to commands that take nothing else."""
    given = options(args, names("--output -o --output-directory"))
    for value in given.values("--output", "-o", "--output-directory"):
        if name not in ("ls-files", "ls-tree", "grep", "commit", "push", "clone", "fetch", "pull"):
            call.scene.write(value, "writes a file")
    if name in ("mv", "apply", "am"):
        for operand in given.operands:
            (call.scene.write if name == "mv" else call.scene.read)(operand)
    call.scene.suspect(operand.text.rpartition(":")[2] for operand in given.operands)
    if name in ("diff", "grep", "show", "blame", "log"):
        for operand in given.operands:
            if operand.text.startswith(("/", "..")) or (operand.text.startswith("$") and not operand.known):
                call.scene.read(operand)


def _look(call: Call, name: str, args: tuple[Arg, ...]) -> None:
    given = options(args, _LOOK_VALUES)
    call.looks()
    if given.unsure:
        call.note("write", "caution", "may be given an option that writes: only the run can tell")
    if any(given.has(each) for each in _RUNNING if not (each in ("-O", "-x") and name != "grep")):
        call.note("write", "dangerous", "lets git run another program")
    if name == "fsck" and given.has("--lost-found"):
        call.note("write", "caution", "writes what it finds")
    if name == "rev-parse" and given.has("--parseopt", "--sq-quote"):
        call.looks()


def _reach(call: Call, name: str, args: tuple[Arg, ...]) -> None:
    given = options(
        args,
        names(
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
            call.scene.hosts[found[1] or found[2]] = None
    if name == "push":
        _push(call, given)
    if name == "clone" and len(given.operands) > 1:
        call.scene.write(given.operands[1], "copies a repository")
    if name == "submodule" and any(arg.text == "foreach" for arg in args):
        call.note("external", "dangerous", "runs a command in each part of the repository")
    if name == "clone" and given.operands[:1] and given.operands[0].text.startswith(("/", ".")):
        call.scene.read(given.operands[0])


def _push(call: Call, given: Options) -> None:
    forced = given.has(
        "-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune", "-d", "--delete"
    )
    refs = given.operands[1:]
    if forced or given.unsure or any(ref.text.startswith(("+", ":")) or not ref.known for ref in refs):
        call.note("external", "dangerous", "overwrites or removes what others have")


def _either(looking: str, changing: str, losing: str, *, bare: bool = True) -> Callable[[Call, tuple[Arg, ...]], None]:
    """A command that looks with some words, changes with others, and loses something with a few."""
    look, lose = names(looking), names(losing)
    taking = names("--format --sort --contains --merged --no-merged --points-at -n --max-count")

    def judge(call: Call, args: tuple[Arg, ...]) -> None:
        given = options(args, taking)
        first = given.operands[0].text if given.operands else ""
        lost = any(given.has(each) for each in lose if each.startswith("-")) or first in lose
        looks = first in look or any(given.has(each) for each in look if each.startswith("-"))
        if lost or given.unsure:
            call.note("write", "dangerous" if lost else "caution", "throws away what may be nowhere else")
        elif looks or (bare and not given.operands and not _changes(given)):
            call.looks()
        else:
            call.note("write", "caution", changing)

    return judge


def _changes(given: Options) -> bool:
    quiet = names(
        "-a -r -v -vv --all --remotes --verbose -l --list --color --no-color --column --format --sort"
        " --show-current -q --merged --no-merged --contains"
    )
    return any(name not in quiet for name, _ in given.given)


def _checkout(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args, names("-b -B --orphan --conflict -s --source"))
    paths = any(arg.text in ("--", ".") or arg.pattern for arg in args) or len(given.operands) > 1
    if call.texts() and (given.has("-f", "--force", "--discard-changes", "-B", "-C") or paths or given.unsure):
        call.note("write", "dangerous", "throws away changes that are nowhere else")
    else:
        call.note("write", "caution", "changes the files to another state")


def _restore(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args, names("-s --source"))
    staged = given.has("--staged", "-S") and not given.has("--worktree", "-W")
    risk: Risk = "caution" if staged and not given.unsure else "dangerous"
    call.note("write", risk, "takes back what was staged" if staged else "throws away changes that are nowhere else")


def _reset(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args)
    hard = given.has("--hard", "--merge", "--keep") or given.unsure
    call.note("write", "dangerous" if hard else "caution", "throws away changes" if hard else "moves what is staged")


def _clean(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args, names("-e --exclude"))
    if given.has("-n", "--dry-run") and not given.unsure:
        call.looks()
    else:
        call.note("write", "dangerous", "removes files that git does not know")


def _stash(call: Call, args: tuple[Arg, ...]) -> None:
    first = args[0].text if args else "push"
    if first in ("list", "show"):
        _look(call, "show", args[1:])
    elif first in ("drop", "clear"):
        call.note("write", "dangerous", "throws away what was put aside")
    else:
        call.note("write", "caution", "puts changes aside or brings them back")


def _config(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args, names("--type --default -f --file --blob"))
    words = [arg.text for arg in given.operands]
    for value in given.values("-f", "--file"):
        call.scene.read(value)
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
        call.looks()
    elif words and _SAFE_KEYS.fullmatch(words[0].lower()) and not given.has("--global", "--system"):
        call.note("write", "caution", "changes the settings of git")
    else:
        call.note("write", "dangerous", "changes settings of git that can run other programs")


def _remote(call: Call, args: tuple[Arg, ...]) -> None:
    first = next((arg.text for arg in args if not arg.text.startswith("-")), "")
    if first in ("update", "prune", "show"):
        _reach(call, "remote", args)
    elif first in ("", "get-url") and all(arg.known for arg in args):
        call.looks()
    else:
        _reach(call, "remote", args)
        call.note("write", "caution", "changes where the repository is fetched from")


def _rebase_helper(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args)
    call.note(
        "write",
        "dangerous" if not given.has("--abort", "--continue", "--skip", "--quit") else "caution",
        "rewrites history",
    )
    if given.has("-x", "--exec"):
        call.note("write", "dangerous", "runs a command for every commit")


def _bisect(call: Call, args: tuple[Arg, ...]) -> None:
    call.note("write", "caution", "changes the files to another state")
    if args and args[0].text == "run":
        call.run(args[1:] or (Arg("", known=False),))


def _commit(call: Call, args: tuple[Arg, ...]) -> None:
    given = options(args, names("-m -F -C -c -t --message --file --author --date --template"))
    call.note("write", "caution", "rewrites the last commit" if given.has("--amend") else "changes the repository")
    for value in given.values("-F", "--file", "-t", "--template"):
        call.scene.read(value)


_SPECIAL: dict[str, Callable[[Call, tuple[Arg, ...]], None]] = {
    "branch": _either(
        "--list -l --show-current --contains --merged --no-merged", "changes branches", "-D -d --delete -M -f --force"
    ),
    "tag": _either("--list -l --contains -v --verify", "makes a tag", "-d --delete -f --force"),
    "worktree": _either("list", "changes working trees", "remove prune", bare=False),
    "reflog": _either("show exists", "changes the log of references", "expire delete"),
    "notes": _either("list show", "changes notes", "remove prune"),
    "symbolic-ref": _either("", "changes a reference", "-d --delete", bare=False),
    "bundle": _either("verify list-heads", "writes a bundle", "", bare=False),
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _restore,
    "reset": _reset,
    "clean": _clean,
    "rm": lambda call, args: call.note(
        "write", "dangerous" if any(arg.text in ("-r", "-rf", "-f") for arg in args) else "caution", "removes files"
    ),
    "stash": _stash,
    "config": _config,
    "remote": _remote,
    "rebase": _rebase_helper,
    "bisect": _bisect,
    "commit": _commit,
    "gc": lambda call, args: call.note(
        "write", "dangerous" if any("prune" in arg.text for arg in args) else "caution", "cleans the repository"
    ),
    "difftool": lambda call, _: call.note("write", "caution", "runs another program on files"),
    "mergetool": lambda call, _: call.note("write", "caution", "runs another program on files"),
}
TABLE: dict[str, Handler] = {"git": git}
