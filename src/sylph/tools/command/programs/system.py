"""Programs that change this machine or its other processes, and the words of the shell itself."""

import re

from sylph.tools.command.call import Call, Handler, options
from sylph.tools.command.names import names

_SHOWING = names("a addr address l link r route n neigh s show list")
_HIDDEN = re.compile(r"\$\(|`|\$\{")


def grave(reason: str) -> Handler:
    return lambda call: call.note("write", "dangerous", reason)


def either(looking: str, reason: str) -> Handler:
    """Only looks if its first word is one of `looking`, or if there is none and `-` is among them."""
    look = names(looking)

    def judge(call: Call) -> None:
        given = [arg.text for arg in call.args]
        first = next((text for text in given if not text.startswith("-") or text in look), "-")
        dashed = all(text in look for text in given if text.startswith("-"))
        if first in look and dashed and all(arg.known and "=" not in arg.text for arg in call.args):
            call.looks()
        else:
            call.note("write", "dangerous", reason)

    return judge


def network(call: Call) -> None:
    if all((arg.sure and arg.text in _SHOWING) or arg.text.startswith("-") for arg in call.args):
        call.looks()
    else:
        call.note("write", "dangerous", "changes the network of this machine")


def kill(call: Call) -> None:
    if any(arg.text in ("-l", "-L", "--list", "-0") for arg in call.args):
        call.looks()
        return
    targets = [arg.text for arg in options(call.args, names("-s -n --signal")).operands]
    own = targets and all(re.fullmatch(r"%\w*|\$!|\$\$|\$BASHPID", text) for text in targets)
    call.note("write", "caution" if own else "dangerous", "ends what it started" if own else "ends processes")


def declares(call: Call) -> None:
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


def tests(call: Call) -> None:
    """test and [: files are only looked at."""
    call.looks()
    if any(arg.text == "-v" for arg in call.args) and any("[" in arg.text[1:] for arg in call.args if arg.text != "["):
        call.note("write", "dangerous", "works out a text that can hide a command")


def settings(call: Call) -> None:
    """set, shopt, enable, hash: how the shell itself behaves."""
    call.looks()
    texts = call.texts()
    if "expand_aliases" in texts or (call.name == "enable" and texts) or (call.name == "hash" and "-p" in texts):
        call.note("write", "dangerous", "changes what the names of commands mean")
    if any(not arg.known for arg in call.args):
        call.note("write", "caution", "changes how the shell behaves: only the run can tell how")


def alias(call: Call) -> None:
    if any("=" in arg.text or not arg.known for arg in call.args):
        call.note("write", "dangerous", "changes what the names of commands mean")
    else:
        call.looks()


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
TABLE: dict[str, Handler] = {
    **{name: grave(reason) for reason, line in _GRAVE.items() for name in names(line)},
    **dict.fromkeys(
        names("systemctl service rc-service initctl supervisorctl pm2"),
        either(
            "status is-active is-enabled is-failed list-units list-unit-files list-timers"
            " show cat --version --user --no-pager --all -a -l --full",
            "changes the services of this machine",
        ),
    ),
    "crontab": either("-l", "lets something run later"),
    "sysctl": either("-a -n", "changes the kernel"),
    "ip": network,
    "timedatectl": either("status show -", "changes the clock"),
    "hostnamectl": either("status -", "renames this machine"),
    "loginctl": either("list-sessions list-users show-session", "changes the sessions of users"),
    "dmesg": either("- -T -H --human", "changes the kernel's log"),
    "kill": kill,
    **dict.fromkeys(names("declare typeset local export readonly read mapfile readarray let getopts unset"), declares),
    **dict.fromkeys(names("test ["), tests),
    **dict.fromkeys(names("set shopt enable hash caller logout fg bg history fc help suspend"), settings),
    **dict.fromkeys(names("alias unalias"), alias),
    "ldd": lambda call: call.note("write", "caution", "may run the program it looks at"),
}
