"""Programs that change files."""

import re
from collections.abc import Sequence

from sylph.tools.command.call import Call, Handler, Options, options
from sylph.tools.command.expand import Arg
from sylph.tools.command.names import names

_MODE = re.compile(r"[0-7]{3,4}|[ugoa]*[-+=][rwxXst]*(,.*)?")


def rm(call: Call) -> None:
    given = options(call.args)
    deep = given.has("-r", "-R", "--recursive") or any(arg.loose for arg in call.args)
    if given.has("--no-preserve-root"):
        call.note("write", "dangerous", "removes without any care")
    for operand in given.operands:
        remove(call, operand, deep=deep)
    if not given.operands:
        call.note("write", "caution", "removes files")


def remove(call: Call, target: Arg, *, deep: bool, reason: str = "removes files") -> None:
    """One file or folder that is removed."""
    paths = call.scene.paths(target)
    whole = deep and (paths is None or any(map(call.scene.root, paths)) or _everything(call, target))
    call.scene.write(target, reason, "dangerous" if whole else "caution")
    if whole:
        call.note("write", "dangerous", f"{reason}: all of a folder that holds much more than it made")


def _everything(call: Call, target: Arg) -> bool:
    """Whether wildcards take all there is at the top of the workspace, or anything in the home."""
    if not target.pattern:
        return False
    return any(map(call.scene.root, call.scene.paths(target) or ["/"])) and "*" in target.text.rpartition("/")[2][:2]


def written(reason: str, *, risk: str = "caution", taking: str = "", running: str = "") -> Handler:
    """Every operand is written."""
    values, bad = names(taking), names(running)

    def judge(call: Call) -> None:
        given = options(call.args, values)
        call.note("write", "safe" if risk == "safe" else "caution", reason)
        _forbidden(call, given, bad)
        for operand in given.operands:
            call.scene.write(operand, reason, "safe" if risk == "safe" else "caution")

    return judge


def _forbidden(call: Call, given: Options, bad: frozenset[str]) -> None:
    for name in bad:
        if given.has(name):
            call.note("write", "dangerous", f"is told by {name} to run something")


def last(operands: Sequence[Arg]) -> list[Arg]:
    """What may be the last operand: behind it there may be nothing where only the run can tell."""
    found: list[Arg] = []
    for operand in reversed(operands):
        found.append(operand)
        if not operand.loose:
            break
    return found


def copied(reason: str, *, moves: bool = False, taking: str = "") -> Handler:
    """The last operand is written, the others are read, or moved away."""
    values = names("-t --target-directory -S --suffix --backup -m --mode -o --owner -g --group") | names(taking)

    def judge(call: Call) -> None:
        given = options(call.args, values)
        call.note("write", "caution", reason)
        targets = given.values("-t", "--target-directory")
        sources = given.operands if targets else given.operands[:-1]
        for target in targets or last(given.operands):
            call.scene.write(target, reason)
        for source in sources:
            call.scene.read(source)
            if moves:
                remove(call, source, deep=True, reason="moves files away")

    return judge


def ln(call: Call) -> None:
    """A link is harmless where it leads to no other place than the workspace."""
    given = options(call.args, names("-t -S --target-directory --suffix"))
    call.note("write", "caution", "makes a link")
    for operand in given.operands[:-1] or given.operands:
        call.scene.read(operand)
    for target in given.values("-t", "--target-directory") or last(given.operands):
        call.scene.write(target, "makes a link")


def mode(call: Call) -> None:
    """chmod, chown, chgrp: the first operand says what, the others where."""
    given = options(
        [arg for arg in call.args if not (arg.certain and _MODE.fullmatch(arg.text))], names("--reference --from")
    )
    said = [arg.text for arg in call.args if arg.certain and _MODE.fullmatch(arg.text)]
    targets = given.operands if said and call.name == "chmod" else given.operands[1:]
    call.note("write", "caution", "changes permissions")
    if any(re.search(r"[2-7]\d{3}|\+.*s|=.*s", text) for text in said):
        call.note("write", "dangerous", "gives a program the rights of its owner")
    deep = given.has("-R", "--recursive")
    for target in targets:
        paths = call.scene.paths(target)
        whole = deep and (paths is None or any(map(call.scene.root, paths)))
        call.scene.write(target, "changes permissions", "dangerous" if whole else "caution")


def dd(call: Call) -> None:
    call.note("write", "caution", "copies bytes")
    for arg in call.args:
        key, _, value = arg.text.partition("=")
        if key == "of":
            call.scene.write(Arg(value, arg.known), "writes bytes over a file")
        elif key == "if":
            call.scene.read(Arg(value, arg.known))


def tee(call: Call) -> None:
    given = options(call.args)
    call.looks()
    if given.unsure:
        call.note("write", "caution", "writes files that only the run can tell")
    for operand in given.operands:
        call.scene.write(operand, "writes a file")


_TAR_RUN = names(
    "--to-command --checkpoint-action --use-compress-program --rsh-command --info-script --new-volume-script"
    " --rmt-command"
)
_TAR_VALUES = (
    names(
        "-f -C -T -X -I -F -b -K -N -V -g -L --file --directory --files-from --exclude-from --exclude --transform"
        " --xform --strip-components --owner --group"
        " --mode --mtime --newer --label --format --listed-incremental"
    )
    | _TAR_RUN
)


def tar(call: Call) -> None:
    args = list(call.args)
    if args and args[0].certain and not args[0].text.startswith("-"):
        # The old form: letters without a dash, their values in order behind them.
        args[0] = Arg(f"-{args[0].text}")
        letters = args[0].text
        args[0] = Arg(letters.replace("f", "") + ("f" if "f" in letters else ""))
    given = options(args, _TAR_VALUES)
    _forbidden(call, given, _TAR_RUN | names("-I -F"))
    files = given.values("-f", "--file")
    if given.unsure:
        call.note("write", "caution", "packs or unpacks what only the run can tell")
    if given.has("-t", "--list") and not given.has(
        "-x", "-c", "-r", "-u", "--extract", "--get", "--create", "--append", "--update", "--delete"
    ):
        _packed(call, files)
        return
    if any(":" in file.text for file in files) and not given.has("--force-local"):
        call.note("external", "caution", "reads or writes an archive on another machine")
    folders = given.values("-C", "--directory") or [Arg(".")]
    if given.has("-x", "--extract", "--get"):
        _packed(call, files)
        _unpacked(call, folders, loose=given.has("-P", "--absolute-names"))
        return
    call.note("write", "caution", "writes an archive")
    for file in files:
        if file.text != "-":
            call.scene.write(file, "writes an archive")
    for operand in given.operands:
        call.scene.read(operand)
    if given.has("--remove-files"):
        call.note("write", "dangerous", "removes what it packs")


def _packed(call: Call, files: Sequence[Arg]) -> None:
    call.looks()
    for file in files:
        if file.text != "-":
            call.scene.read(file)


def _unpacked(call: Call, folders: Sequence[Arg], *, loose: bool) -> None:
    for folder in folders:
        call.scene.write(folder, "unpacks files", "dangerous" if loose else "caution")


def unzip(call: Call) -> None:
    given = options(call.args, names("-d -x -P"))
    for operand in given.operands[:1]:
        call.scene.read(operand)
    if given.has("-l", "-t", "-v", "-p", "-z", "-Z") and not given.unsure:
        call.looks()
        return
    _unpacked(call, given.values("-d") or [Arg(".")], loose=given.has("-:"))


def packer(call: Call) -> None:
    """gzip and its kin: files are replaced, unless it only prints or tests."""
    given = options(call.args, names("-S --suffix -T --threads -o"))
    if (
        given.has("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list")
        and not given.unsure
        and not given.has("-o")
    ):
        call.looks()
        for operand in given.operands:
            call.scene.read(operand)
        return
    if not given.operands and not given.unsure:
        call.looks()
        return
    for operand in (*given.operands, *given.values("-o")):
        call.scene.write(operand, "packs or unpacks files")


def rsync(call: Call) -> None:
    given = options(
        call.args,
        names(
            "-e -f -T -M --rsh --exclude --include --filter --rsync-path --files-from --log-file --backup-dir"
            " --temp-dir"
        ),
    )
    call.note("write", "caution", "copies files")
    _forbidden(call, given, names("-e --rsh --rsync-path -M"))
    if given.has(
        "--delete", "--delete-after", "--delete-before", "--delete-during", "--delete-excluded", "--remove-source-files"
    ):
        call.note("write", "dangerous", "copies files and removes others")
    for operand in given.operands:
        if found := re.match(r"(?:rsync://)?(?:[\w.-]+@)?([\w.-]+)::?", operand.text):
            call.scene.hosts[found[1]] = None
            call.note("external", "caution", "copies files to or from another machine")
    for operand in last(given.operands):
        if ":" not in operand.text:
            call.scene.write(operand, "copies files")
    for operand in given.operands[:-1]:
        if ":" not in operand.text:
            call.scene.read(operand)


def patch(call: Call) -> None:
    given = options(call.args, names("-p -i -o -r -d -D -B -z --strip --input --output --reject-file --directory"))
    call.note("write", "caution", "changes files")
    if given.has("--dry-run") and not given.unsure:
        call.note("read", "safe", "only tries")
    for value in (*given.values("-o", "--output", "-d", "--directory", "-r", "--reject-file"), *given.operands[:1]):
        call.scene.write(value, "changes files")


TABLE: dict[str, Handler] = {
    "rm": rm,
    "rmdir": written("removes empty folders"),
    "unlink": written("removes files"),
    "shred": written("destroys files", taking="-n -s --iterations --size"),
    "mkdir": written("makes folders", risk="safe", taking="-m --mode"),
    "touch": written("makes files or changes their times", risk="safe", taking="-d -r -t --date --reference --time"),
    "mkfifo": written("makes a pipe", taking="-m --mode"),
    "mktemp": written("makes a temporary file", taking="-p --suffix --tmpdir"),
    "truncate": written("cuts files", taking="-s -r --size --reference"),
    "fallocate": written("makes files", taking="-l -o"),
    "split": written("writes the parts of a file", taking="-b -l -n -a -C --bytes --lines", running="--filter"),
    "csplit": written("writes the parts of a file", taking="-f -n -b -k"),
    "mv": copied("moves files", moves=True),
    "rename": written("renames files"),
    "cp": copied("copies files"),
    "install": copied("copies files"),
    "ditto": copied("copies files"),
    "ln": ln,
    "link": ln,
    "chmod": mode,
    "chown": mode,
    "chgrp": mode,
    "dd": dd,
    "tee": tee,
    "sponge": tee,
    "tar": tar,
    "bsdtar": tar,
    "gtar": tar,
    "unzip": unzip,
    "zip": written("writes an archive", taking="-x -i -P", running="-T -TT --unzip-command"),
    "rsync": rsync,
    "patch": patch,
    **dict.fromkeys(names("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress pigz lzma"), packer),
    **dict.fromkeys(names("dos2unix unix2dos ed ex nano emacs pico joe micro ctags etags"), written("changes files")),
}
