"""Programs that reach outside of this machine."""

import re

from sylph.tools.command.call import Call, Handler, options
from sylph.tools.command.expand import Arg
from sylph.tools.command.names import names
from sylph.tools.command.programs.change import last

_URL = re.compile(
    r"(?:(?:https?|ftps?|wss?|sftp|scp|ssh|git|ldap|file|gopher|dict|smb|telnet)://)?(?:[^/@\s]*@)?(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::\d+)?(?:[/?#].*)?"
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):.*")
_CURL = names(
    "-o -O -d -F -T -H -X -u -A -b -c -e -m -K -x -w -E -C -r -U -D -Y -y -z -Q -t --output --data --data-raw"
    " --data-binary --data-urlencode --form --upload-file --header --request"
    " --user --user-agent --cookie --cookie-jar --referer --max-time --config --proxy --write-out --cert --key"
    " --cacert --continue-at --range --dump-header --connect-timeout"
    " --retry --retry-delay --resolve --url --limit-rate --output-dir --trace --trace-ascii --json --netrc-file"
    " --max-redirs --interface --unix-socket --stderr --etag-save"
) - names("-O")


def curl(call: Call) -> None:
    given = options(call.args, _CURL)
    call.note("external", "caution", "reaches another machine")
    for value in given.values(
        "-o",
        "--output",
        "-D",
        "--dump-header",
        "-c",
        "--cookie-jar",
        "--trace",
        "--trace-ascii",
        "--output-dir",
        "--stderr",
        "--etag-save",
    ):
        if value.text != "-":
            call.scene.write(value, "writes what it downloads")
    if given.has("-O", "--remote-name", "-J", "--remote-name-all"):
        call.scene.write(Arg("."), "writes what it downloads")
    for value in given.values("-d", "--data", "--data-binary", "--data-urlencode", "-F", "--form", "--json"):
        _sent(call, value)
    for value in given.values("-T", "--upload-file"):
        call.scene.read(value)
        call.note("external", "dangerous", "sends a file to another machine")
    if given.has("-K", "--config", "--netrc-file", "-E", "--cert", "--key", "-n", "--netrc"):
        call.note("external", "dangerous", "uses settings or keys that cannot be seen here")
    if given.has("-k", "--insecure"):
        call.note("external", "caution", "does not check whom it talks to")
    _hosts(call, [*given.operands, *given.values("--url")])


def _sent(call: Call, value: Arg) -> None:
    if found := re.search(r"(?:^|=)[@<]([^;]+)", value.text):
        call.scene.read(Arg(found[1], value.known))
        call.note("external", "dangerous", "sends a file to another machine")
    elif not value.known:
        call.note("external", "dangerous", "sends what only the run can tell")


def wget(call: Call) -> None:
    taking = names(
        "-O -o -a -P -i -e -U -t -T -Q --output-document --output-file --directory-prefix --input-file --execute"
        " --post-data --post-file --body-file --header --user-agent --tries --timeout --method --use-askpass"
    )
    given = options(call.args, taking)
    call.note("external", "caution", "reaches another machine")
    files = given.values("-O", "--output-document", "-o", "--output-file", "-a", "-P", "--directory-prefix")
    for value in files:
        if value.text != "-":
            call.scene.write(value, "writes what it downloads")
    if not files and not given.has("--spider"):
        call.scene.write(Arg("."), "writes what it downloads")
    for value in given.values("--post-file", "--body-file", "-i", "--input-file"):
        call.scene.read(value)
        call.note("external", "dangerous", "sends a file to another machine")
    if given.has("-e", "--execute", "--use-askpass"):
        call.note("external", "dangerous", "lets it run something else")
    _hosts(call, given.operands)


def _hosts(call: Call, args: list[Arg]) -> None:
    for arg in args:
        if arg.text.startswith("file:"):
            call.scene.read(Arg(re.sub(r"file:/*", "/", arg.text), arg.known))
        elif not arg.known:
            call.note("external", "caution", "reaches a machine that only the run can tell")
        elif found := _URL.fullmatch(arg.text):
            call.scene.hosts[found[1].strip("[]").lower()] = None


def ssh(call: Call) -> None:
    taking = names("-o -p -i -l -F -L -R -D -J -b -c -e -m -w -E -S -W -Q -I -O")
    given = options(call.args, taking, leading=True)
    call.note("external", "dangerous", "works on another machine")
    for value in given.values("-i", "-F"):
        call.scene.read(value)
    if given.operands:
        target = given.operands[0].text
        call.scene.hosts[target.rpartition("@")[2].split(":")[0]] = None


def copy(call: Call) -> None:
    """scp and sftp: a name with a colon is elsewhere."""
    given = options(call.args, names("-o -P -i -F -S -c -l -J -b"))
    call.note("external", "dangerous", "copies files to or from another machine")
    for number, operand in enumerate(given.operands):
        if found := _REMOTE.fullmatch(operand.text):
            call.scene.hosts[found[1]] = None
        elif operand in last(given.operands) and number:
            call.scene.write(operand, "copies files")
        else:
            call.scene.read(operand)


def socket(call: Call) -> None:
    call.note("external", "dangerous", "opens a connection")
    for arg in call.args:
        if re.fullmatch(r"[\w-]+(\.[\w-]+)+", arg.text):
            call.scene.hosts[arg.text] = None


def asks(call: Call) -> None:
    """ping, dig and the like."""
    call.note("external", "caution", "reaches another machine")
    given = options(call.args, names("-c -i -W -w -t -s -p"))
    _hosts(call, [each for each in given.operands if "." in each.text and not each.text.startswith("@")])


_RUIN = names(
    "delete destroy apply rm remove terminate terminate-instances drop purge prune scale drain cordon patch"
    " replace exec cp sync mb rb deploy release merge close rollout ssh"
    " put-object create run-instances publish promote rollback import taint edit set kill stop down uninstall"
    " upgrade install"
)


def cloud(call: Call) -> None:
    """Clients of services elsewhere: looking is one thing, removing another."""
    words = {arg.text for arg in call.args}
    grave = (
        words & _RUIN
        or any(not arg.known for arg in call.args)
        or any(word.upper() in ("DELETE", "PUT", "PATCH", "POST") for word in words)
    )
    call.note(
        "external",
        "dangerous" if grave else "caution",
        "changes something elsewhere" if grave else "talks to a service",
    )


_HOLD = re.compile(
    r"--privileged|--cap-add|--pid[= ]host|--net(work)?[= ]host|--device|docker\.sock"
    r"|(-v|--volume|--mount)[= ]?\S*(/:|source=/,|=/[,:])|(-v|--volume)[= ]?(/|~|\$)"
)


def docker(call: Call) -> None:
    given = options(call.args, names("-H -c --host --context --config -f --file -p"), leading=True)
    rest = given.operands
    name = rest[0].text if rest else ""
    text = " ".join(arg.text for arg in call.args)
    call.note("external", "caution", "talks to the service that runs containers")
    if (
        name in ("rm", "rmi", "kill", "prune", "push", "login", "swarm", "plugin")
        or "prune" in text
        or " rm" in f" {text} "
    ):
        call.note("external", "dangerous", "removes or publishes containers or images")
    if _HOLD.search(text):
        call.note("external", "dangerous", "gives a container hold of this machine")
    if any(not arg.known for arg in call.args):
        call.note("external", "dangerous", "is told something that only the run can tell")


_LOSING = re.compile(
    r"\b(drop|truncate|alter|grant|revoke|shutdown)\b|\bdelete\s+from\s+\S+\s*(;|$)|\bupdate\s+\S+\s+set\s+(?!.*\bwhere\b)|\\!|\.(shell|system)\b|copy\s.*\bprogram\b|load_file|into\s+outfile|flush(all|db)",
    re.IGNORECASE | re.DOTALL,
)
_ASKING = re.compile(
    r"\s*(select|explain|pragma\s+\w+\s*(\([\w']*\))?\s*;?\s*$|with|\.(tables|schema|databases|indexes|indices|dbinfo|headers?|mode)\b)",
    re.IGNORECASE,
)
_SIDE = re.compile(
    r"\n\s*\.|writefile|load_extension|edit\s*\(|readfile|fts3_tokenizer|\b(insert|update|delete|create|attach|replace|vacuum|drop)\b",
    re.IGNORECASE,
)


def sqlite(call: Call) -> None:
    given = options([Arg(arg.text.replace("--", "-", 1), arg.known, arg.pattern, arg.choice) for arg in call.args])
    texts = given.operands[1:]
    words = call.texts()
    for base in given.operands[:1]:
        call.scene.read(base)
    asked = texts and all(
        text.sure is not None and _ASKING.match(text.text) and not _SIDE.search(text.text) for text in texts
    )
    if any(_LOSING.search(word) for word in words) or (call.fed.text and _LOSING.search(call.fed.text)):
        call.note("write", "dangerous", "throws away data")
    elif asked and not any(word in ("-cmd", "--cmd", "-init", "--init") for word in words):
        call.looks()
    else:
        call.note("write", "caution", "changes a database")
        for base in given.operands[:1]:
            call.scene.write(base, "changes a database")


def database(call: Call) -> None:
    text = " ".join(call.texts())
    grave = (
        _LOSING.search(text) or (call.fed.text and _LOSING.search(call.fed.text)) or call.name in ("dropdb", "dropuser")
    )
    call.note("external", "dangerous" if grave else "caution", "throws away data" if grave else "talks to a database")
    given = options(
        call.args,
        names("-h -p -U -d -c -f -u -D -P --host --port --username --dbname --command --file --user --database"),
    )
    for value in given.values("-h", "--host"):
        call.scene.hosts[value.text] = None


TABLE: dict[str, Handler] = {
    "curl": curl,
    "wget": wget,
    **dict.fromkeys(names("http https xh httpie aria2c lynx w3m links elinks youtube-dl yt-dlp"), asks),
    **dict.fromkeys(names("ssh mosh autossh sshpass ssh-copy-id"), ssh),
    **dict.fromkeys(names("scp sftp ftp lftp rclone rcp"), copy),
    **dict.fromkeys(
        names("nc ncat netcat socat telnet openssl ngrok cloudflared tailscale wg openvpn tcpdump nmap tshark"), socket
    ),
    **dict.fromkeys(names("ping ping6 dig host nslookup traceroute tracepath mtr whois"), asks),
    **dict.fromkeys(
        names(
            "gh glab hub aws gcloud az kubectl oc helm terraform tofu pulumi heroku fly flyctl vercel netlify"
            " doctl linode-cli gsutil s3cmd ansible ansible-playbook vault wrangler firebase supabase mail mailx"
            " sendmail mutt msmtp"
        ),
        cloud,
    ),
    **dict.fromkeys(names("docker podman nerdctl docker-compose buildah crictl ctr lxc"), docker),
    **dict.fromkeys(names("sqlite3 sqlite"), sqlite),
    **dict.fromkeys(
        names(
            "psql mysql mariadb mongo mongosh redis-cli mysqldump pg_dump pg_restore dropdb createdb dropuser"
            " clickhouse-client cqlsh influx"
        ),
        database,
    ),
}
