"""The commands by name; a command's module is imported only when it runs."""

from importlib import import_module
from typing import NamedTuple

import click

from sylph.core.errors import UserError
from sylph.core.similar import guess
from sylph.interfaces.cli.options import records


class Entry(NamedTuple):
    module: str
    help: str
    hidden: bool = False


COMMANDS: dict[str, Entry] = {
    "run": Entry("run", "Do a task and print the answer."),
    "chat": Entry("chat", "Talk with Sylph in the terminal."),
    "start": Entry("start", "What `sylph` alone does.", hidden=True),
    "resume": Entry("resume", "Go on with a session: finish its interrupted turn, or open the chat."),
    "retry": Entry("retry", "Run the last turn of a session again."),
    "undo": Entry("undo", "Put files back as they were before the last turn, or before an earlier one."),
    "serve": Entry("serve", "Serve the API, for programs and browsers."),
    "token": Entry("tokens", "Make, list and revoke tokens for the server."),
    "remote": Entry("remote", "Show, set and try the git remote of this folder: address, identity, SSH key."),
    "session": Entry("sessions", "List, show, rename, fork, export … sessions."),
    "task": Entry("tasks", "List, show and replay the turns that were run."),
    "job": Entry("jobs", "List, show and end commands in the background."),
    "status": Entry("status", "What Sylph is doing, with which model, and at what cost."),
    "cost": Entry("cost", "What was spent, by day, session, model, role or faculty; how the budgets stand."),
    "models": Entry("models", "The models that can be used; install a small one, add your own file."),
    "roles": Entry("roles", "Which model does what: main, scout, judge, background, embed, fallback."),
    "connect": Entry("connect", "Save a key, or log in to a service; see what is connected."),
    "disconnect": Entry("disconnect", "Forget the key and the login of a service."),
    "tools": Entry("tools", "What the agent can do, and what of it needs your yes."),
    "policy": Entry("policy", "The rules about what may be done, and why a call would be allowed or not."),
    "identity": Entry("identity", "Who Sylph is, which rules it keeps, where it runs: soul, rules, deployment."),
    "config": Entry("settings", "Show and change the configuration."),
    "doctor": Entry("doctor", "Check that everything Sylph needs is there and in order."),
    "verify": Entry("verify", "Prove that no session's log was changed."),
    "diagnose": Entry("diagnose", "Look through a session for everything that can be wrong with it."),
    "replay": Entry("replay", "Run a session again from its log and compare, byte for byte."),
    "prove": Entry("prove", "Prove what Sylph promises, here and now."),
    "erase": Entry("erase", "Take a secret out of a session for good."),
    "tour": Entry("tour", "A guided tour with a scripted model: no key needed."),
    "completion": Entry("completion", "Completion of commands and ids for your shell."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for name, entry in COMMANDS.items() if not entry.hidden]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        entry = COMMANDS.get(cmd_name)
        return import_module(f"sylph.interfaces.cli.{entry.module}").command if entry else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items() if not entry.hidden])
        with formatter.section("Options of a task"):
            formatter.write_dl(records())


class Group(click.Group):
    """A group that answers a mistyped command with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            raise UserError(
                f"There is no command {ctx.command_path} {args[0]!r}.{guess(args[0], self.commands)}",
                next=[f"{ctx.command_path} --help"],
            )
        return super().resolve_command(ctx, args)
