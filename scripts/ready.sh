# Sourced by ./sylph and ./check, which set $root and $need: makes $venv ready, and costs next to nothing where it is.
venv=$root/.venv
stamp=$venv/.$need-stamp

# The stamp's first line is the directory that .venv was made for: a moved or copied checkout needs a new one.
set_up() {
    [ -f "$stamp" ] && read -r home <"$stamp" && [ "$home" -ef "$root" ] && [ -x "$venv/bin/python" ] || return 1
    [ ! -f "$venv/.unfinished" ] || return 1
    for input in pyproject.toml requirements.lock requirements-dev.lock requirements-uv.lock scripts/bootstrap.py \
        src/sylph/providers/local/runtime.lock src/sylph/providers/local/small.lock; do
        [ "$root/$input" -nt "$stamp" ] && return 1
    done
    [ -z "$(find "$root/web" -name node_modules -prune -o -type f -newer "$stamp" -print -quit)" ] || return 1
    return 0
}

find_python() {
    for python in python3 python3.13 python3.12 python3.11 python; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    done
    echo "sylph: Python 3.11 or newer was not found. Install it (for example: apt install python3 python3-venv) and try again." >&2
    exit 1
}

if ! set_up; then
    find_python
    "$python" "$root/scripts/bootstrap.py" "$need" || exit
elif [ -n "$(find "$root/src/sylph" -name '*.py' -newer "$stamp" -print -quit)" ] && [ -w "$venv" ]; then
    # Only the source changed. Compiling it here helps where Python itself may not write bytecode.
    touch "$venv/.now"
    "$venv/bin/python" -m compileall -qq "$root/src/sylph" && touch -r "$venv/.now" "$stamp"
fi
