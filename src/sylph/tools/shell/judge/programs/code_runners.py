"""Programs that run code: interpreters, builders, test runners and package managers."""

import re

from sylph.tools.shell.judge.name_set import name_set
from sylph.tools.shell.judge.program_call import ParsedOptions, ProgramCall, ProgramHandler, parse_options

_VERSION = name_set("--version -V -v version --help -h help")
_INLINE = name_set("-c -e -E -p -r --eval --print -pe -ne -le -lane -ane -i -pi -x -n")
_GRAVE = re.compile(
    r"rmtree|unlink|os\.remove|rmdir|os\.system|subprocess|popen|os\.exec|spawn|child_process|rmsync|rimraf|\bsocket|urllib|requests\.|http\.client|httpx|aiohttp"
    r"|fetch\s*\(|b64decode|base64|\beval\b|\bexec\b|__import__|`|system\s*\(|qx\W|backtick|file\.delete|fileutils|shutil|marshal|pickle|ctypes",
    re.IGNORECASE,
)


def judge_interpreter(call: ProgramCall) -> None:
    texts = call.arg_texts()
    if len(texts) == 1 and texts[0] in ("--version", "-V", "-v", "--help") and call.args[0].is_certain:
        call.note_read_only()
        return
    if "-m" in texts[:3] and call.name.startswith(("py", "python")):
        _judge_module(call, texts)
        return
    call.note("write", "caution", "runs code")
    if call.stdin.kind == "text":
        call.effects.commands[f"{call.name} << {call.stdin.text or '…'}"] = None
    inline = next(
        (
            number
            for number, text in enumerate(texts)
            if re.fullmatch(r"-[a-zA-Z]*[ceErp]|--eval|--print|eval|-[cer].+", text)
        ),
        None,
    )
    if inline is not None:
        code = " ".join(texts[inline:])
        if any(not arg.known for arg in call.args[inline : inline + 2]):
            call.note("write", "dangerous", "runs code that only the run can tell")
        elif _GRAVE.search(code):
            call.note("write", "dangerous", "runs code that removes files, runs programs or reaches out")
        return
    _judge_program(call)


def _judge_program(call: ProgramCall) -> None:
    """What is run when no code is given: a file, or what comes in."""
    files = [arg for arg in call.args if not arg.text.startswith("-")]
    if files and files[0].text != "/dev/fd/63":
        call.effects.note_read(files[0])
    elif call.stdin.kind == "download":
        call.note("external", "dangerous", "runs what was downloaded")
    elif call.stdin.kind == "pipe" or files:
        call.note("write", "dangerous", "runs what another command prints")
    elif call.stdin.kind == "text" and (call.stdin.text is None or _GRAVE.search(call.stdin.text)):
        call.note("write", "dangerous", "runs code that removes files, runs programs or reaches out")


def _judge_module(call: ProgramCall, texts: list[str]) -> None:
    at = texts.index("-m") + 1
    name = texts[at] if at < len(texts) else ""
    if name in (
        "pip",
        "venv",
        "pytest",
        "unittest",
        "mypy",
        "ruff",
        "black",
        "http.server",
        "build",
        "compileall",
        "py_compile",
        "json.tool",
    ):
        call.note("write", "caution", f"runs {name}")
        if name == "pip":
            call.judge_nested(call.args[at:])
        elif name == "http.server":
            call.note("external", "caution", "opens a server")
    else:
        call.note("write", "caution", "runs code")


def judge_builder(call: ProgramCall) -> None:
    """make, pytest and the like: they run whatever the project tells them to."""
    if len(call.args) == 1 and call.args[0].exact_text in _VERSION:
        call.note_read_only()
        return
    given = parse_options(call.args, name_set("-C -f -o --directory --file --rootdir --cov-report --output"))
    for folder in given.values("-C", "--directory"):
        call.effects.note_write(folder, "runs code of the project")
    call.note("write", "caution", "runs code of the project")


_FETCH = name_set(
    "install i add ci view info update upgrade remove uninstall get sync download fetch create init dlx x exec publish"
    " login adduser push audit outdated search vendor require global link tool self"
)
_LIST = name_set("list ls freeze check --version -V version help")
_SHOW = name_set("pip pip3 pipx")


def _only_lists(name: str, first: str | None, given: ParsedOptions) -> bool:
    own = (first == "show" and name in _SHOW) or (first == "tree" and name == "cargo")
    return (first in _LIST or own) and not given.unsure


def judge_package_manager(call: ProgramCall) -> None:
    """pip, npm, cargo and the like: what looks, what builds, and what fetches from elsewhere."""
    given = parse_options(
        call.args,
        name_set(
            "-r -c -t -e -C --prefix --target --index-url --cwd --manifest-path --registry --requirement --constraint"
        ),
    )
    first = given.operands[0].exact_text if given.operands else (call.args[0].exact_text if call.args else None)
    second = given.operands[1].text if len(given.operands) > 1 else ""
    if not call.args or _only_lists(call.name, first, given):
        call.note_read_only()
    elif first == "pip" or (first == "tool" and second == "run"):
        judge_package_manager(ProgramCall("pip", call.args[1:], call.effects, call.shell, call.stdin))
    elif first in ("publish", "push", "login", "adduser", "yank", "unpublish", "deprecate", "owner"):
        call.note("external", "dangerous", "publishes something or changes an account")
    elif first in _FETCH or given.unsure:
        call.note("external", "caution", "fetches packages and runs what they bring")
        for value in given.values("-t", "--target", "--prefix"):
            call.effects.note_write(value, "installs packages")
        if given.has("-g", "--global", "--user", "--break-system-packages"):
            call.note("external", "dangerous", "installs packages outside of the workspace")
    elif first == "run" and call.name in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba"):
        call.note("write", "caution", "runs a command of the project")
        rest = call.args[[arg.exact_text for arg in call.args].index("run") + 1 :]
        inner = parse_options(
            rest, name_set("-p --python --with --extra --group -n --project --env-file"), leading=True
        ).operands
        if inner:
            call.judge_nested(inner)
    else:
        call.note("write", "caution", "runs code of the project")


def judge_fetched_program(call: ProgramCall) -> None:
    """npx and its kin: a program that is fetched and run."""
    call.note("external", "caution", "fetches a program and runs it")


def judge_system_package(call: ProgramCall) -> None:
    first = next((arg.text for arg in call.args if not arg.text.startswith("-")), "")
    if first in ("list", "show", "search", "info", "policy", "depends", "rdepends", "--version") and all(
        arg.known for arg in call.args
    ):
        call.note("read", "safe", "only looks")
    else:
        call.note("external", "dangerous", "changes the programs of this machine")


def judge_editor(call: ProgramCall) -> None:
    call.note("write", "caution", "changes files")
    for arg in call.args:
        if arg.text.startswith(("+", "-c", "--cmd", "-S", "-s", "-u")) or not arg.known:
            call.note("write", "dangerous", "gives commands to an editor")
        elif not arg.text.startswith("-"):
            call.effects.note_write(arg, "changes a file")


_INTERPRETERS = name_set(
    "python python2 python3 pypy pypy3 ipython perl ruby irb node nodejs deno bun php lua luajit Rscript R julia"
    " tclsh wish expect osascript ghci runghc scala groovy java jshell guile racket elixir erl swift pwsh"
    " powershell bc dc"
)
_BUILDERS = name_set(
    "make gmake cmake ninja meson bazel buck scons gradle gradlew mvn ant sbt rake tox nox pytest py.test"
    " unittest mypy pyright basedpyright ruff black isort flake8 pylint"
    " eslint prettier tsc jest vitest mocha webpack vite rollup esbuild gcc g++ cc c++ clang clang++ ld as rustc"
    " rustfmt gofmt goimports go javac kotlinc swiftc ghc stack cabal"
    " mix rebar3 dune just task invoke fab pre-commit coverage hypothesis sphinx-build mkdocs jekyll hugo protoc"
    " buf cython nuitka pyinstaller xcodebuild dotnet"
    " phpunit rspec cucumber ctest doxygen pdflatex latexmk tectonic pandoc ffmpeg convert magick clang-format"
    " clang-tidy cppcheck golangci-lint staticcheck alembic flask django-admin"
    " uvicorn gunicorn celery jupyter nbconvert streamlit dvc"
)
TABLE: dict[str, ProgramHandler] = {
    **dict.fromkeys(_INTERPRETERS, judge_interpreter),
    **dict.fromkeys(_BUILDERS, judge_builder),
    **dict.fromkeys(
        name_set(
            "pip pip3 pipx uv poetry pipenv pdm hatch rye conda mamba npm pnpm yarn cargo gem bundle composer"
            " opam luarocks cpan cpanm nuget rustup nvm pyenv rbenv asdf mise"
        ),
        judge_package_manager,
    ),
    **dict.fromkeys(name_set("npx bunx uvx pnpx yarnpkg"), judge_fetched_program),
    **dict.fromkeys(
        name_set(
            "apt apt-get aptitude dpkg dnf yum rpm pacman zypper apk brew port snap flatpak nix nix-env nix-shell"
            " emerge pkg softwareupdate"
        ),
        judge_system_package,
    ),
    **dict.fromkeys(name_set("vi vim nvim view vimdiff gvim"), judge_editor),
}
