"""Programs that change this machine or its other processes, and the words of the shell itself."""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler, parse_options

_SHOWING = name_set("a addr address l link r route n neigh s show list")
_HIDDEN = re.compile(r"\$\(|`|\$\{")


def dangerous_handler(reason: str) -> ProgramHandler:
    return lambda call: call.note("write", "dangerous", reason)


def mixed_handler(looking: str, reason: str) -> ProgramHandler:
    """Only looks if its first word is one of `looking`, or if there is none and `-` is among them."""
    look = name_set(looking)

    def judge(call: ProgramCall) -> None:
        given = [arg.text for arg in call.args]
        first = next((text for text in given if not text.startswith("-") or text in look), "-")
        dashed = all(text in look for text in given if text.startswith("-"))
        if first in look and dashed and all(arg.known and "=" not in arg.text for arg in call.args):
            call.note_read_only()
        else:
            call.note("write", "dangerous", reason)

    return judge


def judge_network(call: ProgramCall) -> None:
    if all((arg.exact_text and arg.text in _SHOWING) or arg.text.startswith("-") for arg in call.args):
        call.note_read_only()
    else:
        call.note("write", "dangerous", "changes the network of this machine")


def judge_kill(call: ProgramCall) -> None:
    if any(arg.text in ("-l", "-L", "--list", "-0") for arg in call.args):
        call.note_read_only()
        return
    targets = [arg.text for arg in parse_options(call.args, name_set("-s -n --signal")).operands]
    own = targets and all(re.fullmatch(r"%\w*|\$!|\$\$|\$BASHPID", text) for text in targets)
    call.note("write", "caution" if own else "dangerous", "ends what it started" if own else "ends processes")


def judge_declaration(call: ProgramCall) -> None:
    """declare, export, read, let and the like, whose text is worked out as a sum or as a name."""
    call.note("read", "safe", "only sets variables")
    if any(_HIDDEN.search(arg.text) for arg in call.args) or any(
        arg.text == "-f" for arg in call.args if call.name == "export"
    ):
        call.note("write", "dangerous", "works out a text that can hide a command")
    for arg in call.args:
        if not arg.known and call.name in ("let", "declare", "typeset", "local", "export", "readonly"):
            call.note("write", "caution", "works out a text that only the run can tell")
    if call.name in ("mapfile", "readarray") and any(arg.text.startswith("-C") for arg in call.args):
        call.note("write", "dangerous", "runs a command for every line")


def judge_test(call: ProgramCall) -> None:
    """test and [: files are only looked at."""
    call.note_read_only()
    if any(arg.text == "-v" for arg in call.args) and any("[" in arg.text[1:] for arg in call.args if arg.text != "["):
        call.note("write", "dangerous", "works out a text that can hide a command")


def judge_shell_settings(call: ProgramCall) -> None:
    """set, shopt, enable, hash: how the shell itself behaves."""
    call.note_read_only()
    texts = call.arg_texts()
    if "expand_aliases" in texts or (call.name == "enable" and texts) or (call.name == "hash" and "-p" in texts):
        call.note("write", "dangerous", "changes what the names of commands mean")
    if any(not arg.known for arg in call.args):
        call.note("write", "caution", "changes how the shell behaves: only the run can tell how")


def judge_alias(call: ProgramCall) -> None:
    if any("=" in arg.text or not arg.known for arg in call.args):
        call.note("write", "dangerous", "changes what the names of commands mean")
    else:
        call.note_read_only()


_GRAVE = {
    "turns off or restarts this machine": "shutdown reboot halt poweroff init telinit",
    "makes or changes a file system": (
        "fdisk parted sfdisk gdisk cfdisk wipefs mount umount swapon swapoff losetup cryptsetup lvm vgremove "
        "lvremove pvremove mdadm fsck resize2fs tune2fs blkdiscard hdparm diskutil"
    ),
    "changes users or their rights": (
        "useradd userdel usermod groupadd groupdel groupmod passwd chpasswd chsh chfn visudo vipw adduser "
        "deluser dscl setcap setfacl chattr chcon setenforce"
    ),
    "changes the network of this machine": (
        "iptables ip6tables nft ufw firewall-cmd ifconfig route iwconfig nmcli networksetup brctl tc ethtool"
    ),
    "changes the kernel": "insmod rmmod modprobe kexec dmsetup",
    "ends processes": "pkill killall killall5 xkill skill fuser",
    "lets something run later": "at batch anacron",
    "changes the settings of this machine": (
        "defaults launchctl scutil spctl csrutil nvram bless update-alternatives ldconfig update-rc.d "
        "chkconfig rc-update dconf gsettings xdg-settings"
    ),
    "opens something in the programs of the desktop": (
        "open xdg-open gnome-open start xdotool wmctrl osascript pbcopy xclip xsel wl-copy wl-paste pbpaste "
        "screencapture import scrot"
    ),
    "changes keys": ("gpg gpg2 ssh-keygen ssh-add ssh-agent keytool security secret-tool pass age sops certbot step"),
    "changes what the names of commands mean": "complete bind compgen",
    "opens a session that goes on by itself": "screen tmux dtach disown",
}
TABLE: dict[str, ProgramHandler] = {
    **{name: dangerous_handler(reason) for reason, line in _GRAVE.items() for name in name_set(line)},
    **dict.fromkeys(
        name_set("systemctl service rc-service initctl supervisorctl pm2"),
        mixed_handler(
            "status is-active is-enabled is-failed list-units list-unit-files list-timers"
            " show cat --version --user --no-pager --all -a -l --full",
            "changes the services of this machine",
        ),
    ),
    "crontab": mixed_handler("-l", "lets something run later"),
    "sysctl": mixed_handler("-a -n", "changes the kernel"),
    "ip": judge_network,
    "timedatectl": mixed_handler("status show -", "changes the clock"),
    "hostnamectl": mixed_handler("status -", "renames this machine"),
    "loginctl": mixed_handler("list-sessions list-users show-session", "changes the sessions of users"),
    "dmesg": mixed_handler("- -T -H --human", "changes the kernel's log"),
    "kill": judge_kill,
    **dict.fromkeys(
        name_set("declare typeset local export readonly read mapfile readarray let getopts unset"), judge_declaration
    ),
    **dict.fromkeys(name_set("test ["), judge_test),
    **dict.fromkeys(
        name_set("set shopt enable hash caller logout fg bg history fc help suspend"), judge_shell_settings
    ),
    **dict.fromkeys(name_set("alias unalias"), judge_alias),
    "ldd": lambda call: call.note("write", "caution", "may run the program it looks at"),
}
