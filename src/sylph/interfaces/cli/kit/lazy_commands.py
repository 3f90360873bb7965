"""The commands by name; a command's module is imported only when it runs."""

from importlib import import_module
from typing import NamedTuple

import click

from sylph.core.errors import UserError
from sylph.core.text.suggestion import suggest_word
from sylph.interfaces.cli.kit.options import option_help_records


class CommandEntry(NamedTuple):
    module: str
    help: str
    hidden: bool = False


COMMANDS: dict[str, CommandEntry] = {
    "run": CommandEntry("cli.commands.run", "Do a task and print the answer."),
    "chat": CommandEntry("cli.commands.chat", "Talk with Sylph in the terminal."),
    "start": CommandEntry("cli.commands.start", "What `sylph` alone does.", hidden=True),
    "resume": CommandEntry(
        "cli.commands.resume", "Go on with a session: finish its interrupted turn, or open the chat."
    ),
    "retry": CommandEntry("cli.commands.retry", "Run the last turn of a session again."),
    "undo": CommandEntry(
        "cli.commands.undo", "Put files back as they were before the last turn, or before an earlier one."
    ),
    "serve": CommandEntry("serve_commands.serve", "Serve the API, for programs and browsers."),
    "token": CommandEntry("serve_commands.access_token", "Make, list and revoke tokens for the server."),
    "remote": CommandEntry(
        "cli.commands.setup.remote", "Show, set and try the git remote of this folder: address, identity, SSH key."
    ),
    "session": CommandEntry("cli.commands.session.group", "List, show, rename, fork, export … sessions."),
    "task": CommandEntry("cli.commands.session.task", "List, show and replay the turns that were run."),
    "job": CommandEntry("cli.commands.session.job", "List, show and end commands in the background."),
    "status": CommandEntry("cli.commands.status", "What Sylph is doing, with which model, and at what cost."),
    "cost": CommandEntry(
        "cli.commands.cost", "What was spent, by day, session, model, role or faculty; how the budgets stand."
    ),
    "models": CommandEntry(
        "cli.commands.models.group", "The models that can be used; install a small one, add your own file."
    ),
    "roles": CommandEntry(
        "cli.commands.models.roles", "Which model does what: main, scout, judge, background, embed, fallback."
    ),
    "connect": CommandEntry("cli.commands.connect.group", "Save a key, or log in to a service; see what is connected."),
    "disconnect": CommandEntry("cli.commands.connect.disconnect", "Forget the key and the login of a service."),
    "tools": CommandEntry("cli.commands.setup.tools", "What the agent can do, and what of it needs your yes."),
    "policy": CommandEntry(
        "cli.commands.setup.policy", "The rules about what may be done, and why a call would be allowed or not."
    ),
    "identity": CommandEntry(
        "cli.commands.setup.identity", "Who Sylph is, which rules it keeps, where it runs: soul, rules, deployment."
    ),
    "config": CommandEntry("cli.commands.setup.config", "Show and change the configuration."),
    "doctor": CommandEntry("cli.commands.setup.doctor", "Check that everything Sylph needs is there and in order."),
    "verify": CommandEntry("cli.commands.session.verify", "Prove that no session's log was changed."),
    "diagnose": CommandEntry(
        "cli.commands.session.diagnose", "Look through a session for everything that can be wrong with it."
    ),
    "replay": CommandEntry(
        "cli.commands.session.replay", "Run a session again from its log and compare, byte for byte."
    ),
    "prove": CommandEntry("cli.commands.prove.group", "Prove what Sylph promises, here and now."),
    "erase": CommandEntry("cli.commands.session.erase", "Take a secret out of a session for good."),
    "tour": CommandEntry("cli.commands.tour", "A guided tour with a scripted model: no key needed."),
    "completion": CommandEntry("cli.commands.setup.completion", "Completion of commands and ids for your shell."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for name, entry in COMMANDS.items() if not entry.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        entry = COMMANDS.get(cmd_name)
        return import_module(f"sylph.interfaces.{entry.module}").command if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items() if not entry.hidden])
        with formatter.section("Options of a task"):
            formatter.write_dl(option_help_records())


class SuggestingGroup(click.Group):
    """A group that answers a mistyped command with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise UserError(
                f"There is no command {ctx.command_path} {args[0]!r}.{suggest_word(args[0], self.commands)}",
                next=[f"{ctx.command_path} --help"],
            )
        return super().resolve_command(ctx, args)
