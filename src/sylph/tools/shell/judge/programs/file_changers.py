"""Programs that change files."""

import re
from collections.abc import Sequence

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ParsedOptions, ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.word_expansion import ShellArg

_MODE = re.compile(r"[0-7]{3,4}|[ugoa]*[-+=][rwxXst]*(,.*)?")


def judge_rm(call: ProgramCall) -> None:
    given = parse_options(call.args)
    deep = given.has("-r", "-R", "--recursive") or any(arg.loose for arg in call.args)
    if given.has("--no-preserve-root"):
        call.note("write", "dangerous", "removes without any care")
    for operand in given.operands:
        note_removal(call, operand, deep=deep)
    if not given.operands:
        call.note("write", "caution", "removes files")


def note_removal(call: ProgramCall, target: ShellArg, *, deep: bool, reason: str = "removes files") -> None:
    """One file or folder that is removed."""
    paths = call.effects.resolve_paths(target)
    whole = deep and (paths is None or any(map(call.effects.is_root, paths)) or _takes_everything(call, target))
    call.effects.note_write(target, reason, "dangerous" if whole else "caution")
    if whole:
        call.note("write", "dangerous", f"{reason}: all of a folder that holds much more than it made")


def _takes_everything(call: ProgramCall, target: ShellArg) -> bool:
    """Whether wildcards take all there is at the top of the workspace, or anything in the home."""
    if not target.pattern:
        return False
    return (
        any(map(call.effects.is_root, call.effects.resolve_paths(target) or ["/"]))
        and "*" in target.text.rpartition("/")[2][:2]
    )


def writer_handler(reason: str, *, risk: str = "caution", taking: str = "", running: str = "") -> ProgramHandler:
    """Every operand is written."""
    values, bad = name_set(taking), name_set(running)

    def judge(call: ProgramCall) -> None:
        given = parse_options(call.args, values)
        call.note("write", "safe" if risk == "safe" else "caution", reason)
        _note_running_options(call, given, bad)
        for operand in given.operands:
            call.effects.note_write(operand, reason, "safe" if risk == "safe" else "caution")

    return judge


def _note_running_options(call: ProgramCall, given: ParsedOptions, bad: frozenset[str]) -> None:
    for name in bad:
        if given.has(name):
            call.note("write", "dangerous", f"is told by {name} to run something")


def last_operands(operands: Sequence[ShellArg]) -> list[ShellArg]:
    """What may be the last operand: behind it there may be nothing where only the run can tell."""
    found: list[ShellArg] = []
    for operand in reversed(operands):
        found.append(operand)
        if not operand.loose:
            break
    return found


def copier_handler(reason: str, *, moves: bool = False, taking: str = "") -> ProgramHandler:
    """The last operand is written, the others are read, or moved away."""
    values = name_set("-t --target-directory -S --suffix --backup -m --mode -o --owner -g --group") | name_set(taking)

    def judge(call: ProgramCall) -> None:
        given = parse_options(call.args, values)
        call.note("write", "caution", reason)
        targets = given.values("-t", "--target-directory")
        sources = given.operands if targets else given.operands[:-1]
        for target in targets or last_operands(given.operands):
            call.effects.note_write(target, reason)
        for source in sources:
            call.effects.note_read(source)
            if moves:
                note_removal(call, source, deep=True, reason="moves files away")

    return judge


def judge_ln(call: ProgramCall) -> None:
    """A link is harmless where it leads to no other place than the workspace."""
    given = parse_options(call.args, name_set("-t -S --target-directory --suffix"))
    call.note("write", "caution", "makes a link")
    for operand in given.operands[:-1] or given.operands:
        call.effects.note_read(operand)
    for target in given.values("-t", "--target-directory") or last_operands(given.operands):
        call.effects.note_write(target, "makes a link")


def judge_mode_change(call: ProgramCall) -> None:
    """chmod, chown, chgrp: the first operand says what, the others where."""
    given = parse_options(
        [arg for arg in call.args if not (arg.is_certain and _MODE.fullmatch(arg.text))], name_set("--reference --from")
    )
    said = [arg.text for arg in call.args if arg.is_certain and _MODE.fullmatch(arg.text)]
    targets = given.operands if said and call.name == "chmod" else given.operands[1:]
    call.note("write", "caution", "changes permissions")
    if any(re.search(r"[2-7]\d{3}|\+.*s|=.*s", text) for text in said):
        call.note("write", "dangerous", "gives a program the rights of its owner")
    deep = given.has("-R", "--recursive")
    for target in targets:
        paths = call.effects.resolve_paths(target)
        whole = deep and (paths is None or any(map(call.effects.is_root, paths)))
        call.effects.note_write(target, "changes permissions", "dangerous" if whole else "caution")


def judge_dd(call: ProgramCall) -> None:
    call.note("write", "caution", "copies bytes")
    for arg in call.args:
        key, _, value = arg.text.partition("=")
        if key == "of":
            call.effects.note_write(ShellArg(value, arg.known), "writes bytes over a file")
        elif key == "if":
            call.effects.note_read(ShellArg(value, arg.known))


def judge_tee(call: ProgramCall) -> None:
    given = parse_options(call.args)
    call.note_read_only()
    if given.unsure:
        call.note("write", "caution", "writes files that only the run can tell")
    for operand in given.operands:
        call.effects.note_write(operand, "writes a file")


_TAR_RUN = name_set(
    "--to-command --checkpoint-action --use-compress-program --rsh-command --info-script --new-volume-script"
    " --rmt-command"
)
_TAR_VALUES = (
    name_set(
        "-f -C -T -X -I -F -b -K -N -V -g -L --file --directory --files-from --exclude-from --exclude --transform"
        " --xform --strip-components --owner --group"
        " --mode --mtime --newer --label --format --listed-incremental"
    )
    | _TAR_RUN
)


def judge_tar(call: ProgramCall) -> None:
    args = list(call.args)
    if args and args[0].is_certain and not args[0].text.startswith("-"):
        # The old form: letters without a dash, their values in order behind them.
        args[0] = ShellArg(f"-{args[0].text}")
        letters = args[0].text
        args[0] = ShellArg(letters.replace("f", "") + ("f" if "f" in letters else ""))
    given = parse_options(args, _TAR_VALUES)
    _note_running_options(call, given, _TAR_RUN | name_set("-I -F"))
    files = given.values("-f", "--file")
    if given.unsure:
        call.note("write", "caution", "packs or unpacks what only the run can tell")
    if given.has("-t", "--list") and not given.has(
        "-x", "-c", "-r", "-u", "--extract", "--get", "--create", "--append", "--update", "--delete"
    ):
        _note_archives(call, files)
        return
    if any(":" in file.text for file in files) and not given.has("--force-local"):
        call.note("external", "caution", "reads or writes an archive on another machine")
    folders = given.values("-C", "--directory") or [ShellArg(".")]
    if given.has("-x", "--extract", "--get"):
        _note_archives(call, files)
        _note_unpacking(call, folders, loose=given.has("-P", "--absolute-names"))
        return
    call.note("write", "caution", "writes an archive")
    for file in files:
        if file.text != "-":
            call.effects.note_write(file, "writes an archive")
    for operand in given.operands:
        call.effects.note_read(operand)
    if given.has("--remove-files"):
        call.note("write", "dangerous", "removes what it packs")


def _note_archives(call: ProgramCall, files: Sequence[ShellArg]) -> None:
    call.note_read_only()
    for file in files:
        if file.text != "-":
            call.effects.note_read(file)


def _note_unpacking(call: ProgramCall, folders: Sequence[ShellArg], *, loose: bool) -> None:
    for folder in folders:
        call.effects.note_write(folder, "unpacks files", "dangerous" if loose else "caution")


def judge_unzip(call: ProgramCall) -> None:
    given = parse_options(call.args, name_set("-d -x -P"))
    for operand in given.operands[:1]:
        call.effects.note_read(operand)
    if given.has("-l", "-t", "-v", "-p", "-z", "-Z") and not given.unsure:
        call.note_read_only()
        return
    _note_unpacking(call, given.values("-d") or [ShellArg(".")], loose=given.has("-:"))


def judge_packer(call: ProgramCall) -> None:
    """gzip and its kin: files are replaced, unless it only prints or tests."""
    given = parse_options(call.args, name_set("-S --suffix -T --threads -o"))
    if (
        given.has("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list")
        and not given.unsure
        and not given.has("-o")
    ):
        call.note_read_only()
        for operand in given.operands:
            call.effects.note_read(operand)
        return
    if not given.operands and not given.unsure:
        call.note_read_only()
        return
    for operand in (*given.operands, *given.values("-o")):
        call.effects.note_write(operand, "packs or unpacks files")


def judge_rsync(call: ProgramCall) -> None:
    given = parse_options(
        call.args,
        name_set(
            "-e -f -T -M --rsh --exclude --include --filter --rsync-path --files-from --log-file --backup-dir"
            " --temp-dir"
        ),
    )
    call.note("write", "caution", "copies files")
    _note_running_options(call, given, name_set("-e --rsh --rsync-path -M"))
    if given.has(
        "--delete", "--delete-after", "--delete-before", "--delete-during", "--delete-excluded", "--remove-source-files"
    ):
        call.note("write", "dangerous", "copies files and removes others")
    for operand in given.operands:
        if found := re.match(r"(?:rsync://)?(?:[\w.-]+@)?([\w.-]+)::?", operand.text):
            call.effects.hosts[found[1]] = None
            call.note("external", "caution", "copies files to or from another machine")
    for operand in last_operands(given.operands):
        if ":" not in operand.text:
            call.effects.note_write(operand, "copies files")
    for operand in given.operands[:-1]:
        if ":" not in operand.text:
            call.effects.note_read(operand)


def judge_patch(call: ProgramCall) -> None:
    given = parse_options(
        call.args, name_set("-p -i -o -r -d -D -B -z --strip --input --output --reject-file --directory")
    )
    call.note("write", "caution", "changes files")
    if given.has("--dry-run") and not given.unsure:
        call.note("read", "safe", "only tries")
    for value in (*given.values("-o", "--output", "-d", "--directory", "-r", "--reject-file"), *given.operands[:1]):
        call.effects.note_write(value, "changes files")


TABLE: dict[str, ProgramHandler] = {
    "rm": judge_rm,
    "rmdir": writer_handler("removes empty folders"),
    "unlink": writer_handler("removes files"),
    "shred": writer_handler("destroys files", taking="-n -s --iterations --size"),
    "mkdir": writer_handler("makes folders", risk="safe", taking="-m --mode"),
    "touch": writer_handler(
        "makes files or changes their times", risk="safe", taking="-d -r -t --date --reference --time"
    ),
    "mkfifo": writer_handler("makes a pipe", taking="-m --mode"),
    "mktemp": writer_handler("makes a temporary file", taking="-p --suffix --tmpdir"),
    "truncate": writer_handler("cuts files", taking="-s -r --size --reference"),
    "fallocate": writer_handler("makes files", taking="-l -o"),
    "split": writer_handler("writes the parts of a file", taking="-b -l -n -a -C --bytes --lines", running="--filter"),
    "csplit": writer_handler("writes the parts of a file", taking="-f -n -b -k"),
    "mv": copier_handler("moves files", moves=True),
    "rename": writer_handler("renames files"),
    "cp": copier_handler("copies files"),
    "install": copier_handler("copies files"),
    "ditto": copier_handler("copies files"),
    "ln": judge_ln,
    "link": judge_ln,
    "chmod": judge_mode_change,
    "chown": judge_mode_change,
    "chgrp": judge_mode_change,
    "dd": judge_dd,
    "tee": judge_tee,
    "sponge": judge_tee,
    "tar": judge_tar,
    "bsdtar": judge_tar,
    "gtar": judge_tar,
    "unzip": judge_unzip,
    "zip": writer_handler("writes an archive", taking="-x -i -P", running="-T -TT --unzip-command"),
    "rsync": judge_rsync,
    "patch": judge_patch,
    **dict.fromkeys(
        name_set("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress pigz lzma"), judge_packer
    ),
    **dict.fromkeys(
        name_set("dos2unix unix2dos ed ex nano emacs pico joe micro ctags etags"), writer_handler("changes files")
    ),
}
