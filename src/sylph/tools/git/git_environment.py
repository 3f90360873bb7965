"""What git is run with, whatever it is run for: options and variables."""

from collections.abc import Mapping

from sylph.tools.shell.command import NONINTERACTIVE_ENV, strip_credentials

# Settings of ours: for every command, whatever the user has configured.
FIXED_OPTIONS = (
    *("--no-pager", "--literal-pathspecs"),
    *("-c", "core.quotePath=false", "-c", "color.ui=false", "-c", "core.fsmonitor=false", "-c", "gc.autoDetach=false"),
    *("-c", "submodule.recurse=false", "-c", "protocol.ext.allow=never"),
)
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
# Nobody answers a prompt; only machines that the user's ssh knows are trusted; messages in the words we look for.
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "file:git:https:ssh",
    "GIT_ASKPASS": "",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes",
    "GIT_MERGE_AUTOEDIT": "no",
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
}
# What the user may have set for all git commands. The rest (GIT_DIR …) is meant for a command in another place.
KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG", "GIT_SSH", "GIT_SSL", "GIT_EXEC_PATH", "GIT_PROXY")


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    usual = {
        name: value
        for name, value in strip_credentials(environ).items()
        if (not name.startswith("GIT_") or name.startswith(KEPT)) and name != "SSH_ASKPASS"
    }
    return {
        **NONINTERACTIVE_ENV,
        **ENVIRONMENT,
        **usual,
        "GIT_ALLOW_PROTOCOL": ENVIRONMENT["GIT_ALLOW_PROTOCOL"],
        "LC_ALL": "C.UTF-8",
    }
