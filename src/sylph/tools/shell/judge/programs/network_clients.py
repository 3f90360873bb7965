"""Programs that reach outside of this machine."""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ProgramCall, ProgramHandler, parse_options
from sylph.tools.shell.judge.programs.file_changers import last_operands
from sylph.tools.shell.judge.word_expansion import ShellArg

_URL = re.compile(
    r"(?:(?:https?|ftps?|wss?|sftp|scp|ssh|git|ldap|file|gopher|dict|smb|telnet)://)?(?:[^/@\s]*@)?(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::\d+)?(?:[/?#].*)?"
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?([\w.-]+):.*")
_CURL = name_set(
    "-o -O -d -F -T -H -X -u -A -b -c -e -m -K -x -w -E -C -r -U -D -Y -y -z -Q -t --output --data --data-raw"
    " --data-binary --data-urlencode --form --upload-file --header --request"
    " --user --user-agent --cookie --cookie-jar --referer --max-time --config --proxy --write-out --cert --key"
    " --cacert --continue-at --range --dump-header --connect-timeout"
    " --retry --retry-delay --resolve --url --limit-rate --output-dir --trace --trace-ascii --json --netrc-file"
    " --max-redirs --interface --unix-socket --stderr --etag-save"
) - name_set("-O")


def judge_curl(call: ProgramCall) -> None:
    given = parse_options(call.args, _CURL)
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
            call.effects.note_write(value, "writes what it downloads")
    if given.has("-O", "--remote-name", "-J", "--remote-name-all"):
        call.effects.note_write(ShellArg("."), "writes what it downloads")
    for value in given.values("-d", "--data", "--data-binary", "--data-urlencode", "-F", "--form", "--json"):
        _note_sent_data(call, value)
    for value in given.values("-T", "--upload-file"):
        call.effects.note_read(value)
        call.note("external", "dangerous", "sends a file to another machine")
    if given.has("-K", "--config", "--netrc-file", "-E", "--cert", "--key", "-n", "--netrc"):
        call.note("external", "dangerous", "uses settings or keys that cannot be seen here")
    if given.has("-k", "--insecure"):
        call.note("external", "caution", "does not check whom it talks to")
    _note_hosts(call, [*given.operands, *given.values("--url")])


def _note_sent_data(call: ProgramCall, value: ShellArg) -> None:
    if found := re.search(r"(?:^|=)[@<]([^;]+)", value.text):
        call.effects.note_read(ShellArg(found[1], value.known))
        call.note("external", "dangerous", "sends a file to another machine")
    elif not value.known:
        call.note("external", "dangerous", "sends what only the run can tell")


def judge_wget(call: ProgramCall) -> None:
    taking = name_set(
        "-O -o -a -P -i -e -U -t -T -Q --output-document --output-file --directory-prefix --input-file --execute"
        " --post-data --post-file --body-file --header --user-agent --tries --timeout --method --use-askpass"
    )
    given = parse_options(call.args, taking)
    call.note("external", "caution", "reaches another machine")
    files = given.values("-O", "--output-document", "-o", "--output-file", "-a", "-P", "--directory-prefix")
    for value in files:
        if value.text != "-":
            call.effects.note_write(value, "writes what it downloads")
    if not files and not given.has("--spider"):
        call.effects.note_write(ShellArg("."), "writes what it downloads")
    for value in given.values("--post-file", "--body-file", "-i", "--input-file"):
        call.effects.note_read(value)
        call.note("external", "dangerous", "sends a file to another machine")
    if given.has("-e", "--execute", "--use-askpass"):
        call.note("external", "dangerous", "lets it run something else")
    _note_hosts(call, given.operands)


def _note_hosts(call: ProgramCall, args: list[ShellArg]) -> None:
    for arg in args:
        if arg.text.startswith("file:"):
            call.effects.note_read(ShellArg(re.sub(r"file:/*", "/", arg.text), arg.known))
        elif not arg.known:
            call.note("external", "caution", "reaches a machine that only the run can tell")
        elif found := _URL.fullmatch(arg.text):
            call.effects.hosts[found[1].strip("[]").lower()] = None


def judge_ssh(call: ProgramCall) -> None:
    taking = name_set("-o -p -i -l -F -L -R -D -J -b -c -e -m -w -E -S -W -Q -I -O")
    given = parse_options(call.args, taking, leading=True)
    call.note("external", "dangerous", "works on another machine")
    for value in given.values("-i", "-F"):
        call.effects.note_read(value)
    if given.operands:
        target = given.operands[0].text
        call.effects.hosts[target.rpartition("@")[2].split(":")[0]] = None


def judge_remote_copy(call: ProgramCall) -> None:
    """scp and sftp: a name with a colon is elsewhere."""
    given = parse_options(call.args, name_set("-o -P -i -F -S -c -l -J -b"))
    call.note("external", "dangerous", "copies files to or from another machine")
    for number, operand in enumerate(given.operands):
        if found := _REMOTE.fullmatch(operand.text):
            call.effects.hosts[found[1]] = None
        elif operand in last_operands(given.operands) and number:
            call.effects.note_write(operand, "copies files")
        else:
            call.effects.note_read(operand)


def judge_socket(call: ProgramCall) -> None:
    call.note("external", "dangerous", "opens a connection")
    for arg in call.args:
        if re.fullmatch(r"[\w-]+(\.[\w-]+)+", arg.text):
            call.effects.hosts[arg.text] = None


def judge_network_query(call: ProgramCall) -> None:
    """ping, dig and the like."""
    call.note("external", "caution", "reaches another machine")
    given = parse_options(call.args, name_set("-c -i -W -w -t -s -p"))
    _note_hosts(call, [each for each in given.operands if "." in each.text and not each.text.startswith("@")])


_RUIN = name_set(
    "delete destroy apply rm remove terminate terminate-instances drop purge prune scale drain cordon patch"
    " replace exec cp sync mb rb deploy release merge close rollout ssh"
    " put-object create run-instances publish promote rollback import taint edit set kill stop down uninstall"
    " upgrade install"
)


def judge_cloud(call: ProgramCall) -> None:
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


def judge_docker(call: ProgramCall) -> None:
    given = parse_options(call.args, name_set("-H -c --host --context --config -f --file -p"), leading=True)
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


def judge_sqlite(call: ProgramCall) -> None:
    given = parse_options(
        [ShellArg(arg.text.replace("--", "-", 1), arg.known, arg.pattern, arg.choice) for arg in call.args]
    )
    texts = given.operands[1:]
    words = call.arg_texts()
    for base in given.operands[:1]:
        call.effects.note_read(base)
    asked = texts and all(
        text.exact_text is not None and _ASKING.match(text.text) and not _SIDE.search(text.text) for text in texts
    )
    if any(_LOSING.search(word) for word in words) or (call.stdin.text and _LOSING.search(call.stdin.text)):
        call.note("write", "dangerous", "throws away data")
    elif asked and not any(word in ("-cmd", "--cmd", "-init", "--init") for word in words):
        call.note_read_only()
    else:
        call.note("write", "caution", "changes a database")
        for base in given.operands[:1]:
            call.effects.note_write(base, "changes a database")


def judge_database(call: ProgramCall) -> None:
    text = " ".join(call.arg_texts())
    grave = (
        _LOSING.search(text)
        or (call.stdin.text and _LOSING.search(call.stdin.text))
        or call.name in ("dropdb", "dropuser")
    )
    call.note("external", "dangerous" if grave else "caution", "throws away data" if grave else "talks to a database")
    given = parse_options(
        call.args,
        name_set("-h -p -U -d -c -f -u -D -P --host --port --username --dbname --command --file --user --database"),
    )
    for value in given.values("-h", "--host"):
        call.effects.hosts[value.text] = None


TABLE: dict[str, ProgramHandler] = {
    "curl": judge_curl,
    "wget": judge_wget,
    **dict.fromkeys(
        name_set("http https xh httpie aria2c lynx w3m links elinks youtube-dl yt-dlp"), judge_network_query
    ),
    **dict.fromkeys(name_set("ssh mosh autossh sshpass ssh-copy-id"), judge_ssh),
    **dict.fromkeys(name_set("scp sftp ftp lftp rclone rcp"), judge_remote_copy),
    **dict.fromkeys(
        name_set("nc ncat netcat socat telnet openssl ngrok cloudflared tailscale wg openvpn tcpdump nmap tshark"),
        judge_socket,
    ),
    **dict.fromkeys(name_set("ping ping6 dig host nslookup traceroute tracepath mtr whois"), judge_network_query),
    **dict.fromkeys(
        name_set(
            "gh glab hub aws gcloud az kubectl oc helm terraform tofu pulumi heroku fly flyctl vercel netlify"
            " doctl linode-cli gsutil s3cmd ansible ansible-playbook vault wrangler firebase supabase mail mailx"
            " sendmail mutt msmtp"
        ),
        judge_cloud,
    ),
    **dict.fromkeys(name_set("docker podman nerdctl docker-compose buildah crictl ctr lxc"), judge_docker),
    **dict.fromkeys(name_set("sqlite3 sqlite"), judge_sqlite),
    **dict.fromkeys(
        name_set(
            "psql mysql mariadb mongo mongosh redis-cli mysqldump pg_dump pg_restore dropdb createdb dropuser"
            " clickhouse-client cqlsh influx"
        ),
        judge_database,
    ),
}
