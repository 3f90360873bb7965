"""The command line: which words are a command and which are a task, and how every error is shown."""

import os
import shutil
import sys
from collections.abc import Sequence
from io import TextIOWrapper

import click
import msgspec
from click.shell_completion import shell_complete

from sylph import __version__
from sylph.core.errors import SylphError, UserError
from sylph.interfaces.cli.kit import exit_code
from sylph.interfaces.cli.kit.argv import arrange_argv
from sylph.interfaces.cli.kit.cli_context import CliContext
from sylph.interfaces.cli.kit.colours import paint_lines
from sylph.interfaces.cli.kit.lazy_commands import COMMANDS, LazyGroup
from sylph.interfaces.cli.terminal.wrap import wrap_line
from sylph.interfaces.text.render import error_lines

COMPLETION_VARIABLE = "_SYLPH_COMPLETE"
EPILOG = "A first word that is no command begins a task: sylph explain this project"


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="sylph %(version)s")
@click.option("--alone", is_flag=True, expose_value=False, help="Do it here, though a server runs.")
def sylph() -> None:
    """Give Sylph work in plain words; it does the work here, with the model you choose, and keeps a log of it all.

    \b
      sylph "TASK"            do a task and print the answer
      sylph                   open the chat
      cat log | sylph "why?"  a task about what comes on stdin
    """


def main(argv: Sequence[str]) -> int:  # noqa: PLR0911 - one flat table of how a command can end
    """Runs the command line and returns its exit code. Nothing a user can cause ends in a traceback."""
    _tame_streams()
    try:
        code = _invoke_command(argv)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(f"{error.format_message()}\n")
        return 0
    except click.ClickException as error:
        return report_error(_usage_error(error), argv)
    except SylphError as error:
        return report_error(error, argv)
    except BrokenPipeError:
        _give_up_stdout()
        return exit_code.CLOSED.number
    except OSError as error:
        _give_up_stdout()
        return report_error(UserError(f"{error.filename or 'The output'}: {error.strerror}.", kind="io"), ())
    except (KeyboardInterrupt, click.Abort):
        return exit_code.INTERRUPTED.number
    return code


def _invoke_command(argv: Sequence[str]) -> int:
    if completing := os.environ.get(COMPLETION_VARIABLE):
        return shell_complete(sylph, {"obj": CliContext()}, "sylph", COMPLETION_VARIABLE, completing)
    argv, alone = _strip_alone_option(argv)
    words = arrange_argv(argv, set(COMMANDS))
    with sylph.make_context("sylph", words, obj=CliContext(alone=alone)) as context:
        return sylph.invoke(context) or 0


def _strip_alone_option(argv: Sequence[str]) -> tuple[list[str], bool]:
    """The words without `--alone`, wherever it stood, and whether it did."""
    end = argv.index("--") if "--" in argv else len(argv)
    options = [word for word in argv[:end] if word != "--alone"]
    return [*options, *argv[end:]], len(options) < end


def report_error(error: SylphError, argv: Sequence[str]) -> int:
    """Shows an error in its one shape, and gives its exit code."""
    if "--json" in argv:
        sys.stdout.write(msgspec.json.encode({"error": error.trouble}).decode() + "\n")
    else:
        tty = sys.stderr.isatty()
        lines = list(error_lines(error.trouble))
        rows = [row for each in lines for row in wrap_line(each, shutil.get_terminal_size().columns)] if tty else lines
        sys.stderr.write(paint_lines(rows, colour=tty and CliContext().base_config.terminal.colour))
    return exit_code.for_error(error)


def _usage_error(error: click.ClickException) -> UserError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path.removesuffix(" start") if context else "sylph"
    return UserError(error.format_message(), next=[f"{path} --help"])


def _give_up_stdout() -> None:
    """Nobody can read it any more; without this, Python would complain once more when it closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tame_streams() -> None:
    """What a terminal cannot show becomes `?`, and a stream that was closed from the start is an empty one."""
    # In this order: each open takes the lowest free number, which is the one that is missing.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115 - it lives as long as the program
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
