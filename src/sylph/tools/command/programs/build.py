"""Programs that run code: interpreters, builders, test runners and package managers."""

import re

from sylph.tools.command.call import Call, Handler, Options, options
from sylph.tools.command.names import names

_VERSION = names("--version -V -v version --help -h help")
_INLINE = names("-c -e -E -p -r --eval --print -pe -ne -le -lane -ane -i -pi -x -n")
_GRAVE = re.compile(
    r"rmtree|unlink|os\.remove|rmdir|os\.system|subprocess|popen|os\.exec|spawn|child_process|rmsync|rimraf|\bsocket|urllib|requests\.|http\.client|httpx|aiohttp"
    r"|fetch\s*\(|b64decode|base64|\beval\b|\bexec\b|__import__|`|system\s*\(|qx\W|backtick|file\.delete|fileutils|shutil|marshal|pickle|ctypes",
    re.IGNORECASE,
)


def interpreter(call: Call) -> None:
    texts = call.texts()
    if len(texts) == 1 and texts[0] in ("--version", "-V", "-v", "--help") and call.args[0].certain:
        call.looks()
        return
    if "-m" in texts[:3] and call.name.startswith(("py", "python")):
        _module(call, texts)
        return
    call.note("write", "caution", "runs code")
    if call.fed.kind == "text":
        call.scene.commands[f"{call.name} << {call.fed.text or '…'}"] = None
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
    _program(call)


def _program(call: Call) -> None:
    """What is run when no code is given: a file, or what comes in."""
    files = [arg for arg in call.args if not arg.text.startswith("-")]
    if files and files[0].text != "/dev/fd/63":
        call.scene.read(files[0])
    elif call.fed.kind == "download":
        call.note("external", "dangerous", "runs what was downloaded")
    elif call.fed.kind == "pipe" or files:
        call.note("write", "dangerous", "runs what another command prints")
    elif call.fed.kind == "text" and (call.fed.text is None or _GRAVE.search(call.fed.text)):
        call.note("write", "dangerous", "runs code that removes files, runs programs or reaches out")


def _module(call: Call, texts: list[str]) -> None:
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
            call.run(call.args[at:])
        elif name == "http.server":
            call.note("external", "caution", "opens a server")
    else:
        call.note("write", "caution", "runs code")


def builder(call: Call) -> None:
    """make, pytest and the like: they run whatever the project tells them to."""
    if len(call.args) == 1 and call.args[0].sure in _VERSION:
        call.looks()
        return
    given = options(call.args, names("-C -f -o --directory --file --rootdir --cov-report --output"))
    for folder in given.values("-C", "--directory"):
        call.scene.write(folder, "runs code of the project")
    call.note("write", "caution", "runs code of the project")


_FETCH = names(
    "install i add ci view info update upgrade remove uninstall get sync download fetch create init dlx x exec publish"
    " login adduser push audit outdated search vendor require global link tool self"
)
_LIST = names("list ls freeze check --version -V version help")
_SHOW = names("pip pip3 pipx")


def _lists(name: str, first: str | None, given: Options) -> bool:
    own = (first == "show" and name in _SHOW) or (first == "tree" and name == "cargo")
    return (first in _LIST or own) and not given.unsure


def package(call: Call) -> None:
    """pip, npm, cargo and the like: what looks, what builds, and what fetches from elsewhere."""
    given = options(
        call.args,
        names(
            "-r -c -t -e -C --prefix --target --index-url --cwd --manifest-path --registry --requirement --constraint"
        ),
    )
    first = given.operands[0].sure if given.operands else (call.args[0].sure if call.args else None)
    second = given.operands[1].text if len(given.operands) > 1 else ""
    if not call.args or _lists(call.name, first, given):
        call.looks()
    elif first == "pip" or (first == "tool" and second == "run"):
        package(Call("pip", call.args[1:], call.scene, call.shell, call.fed))
    elif first in ("publish", "push", "login", "adduser", "yank", "unpublish", "deprecate", "owner"):
        call.note("external", "dangerous", "publishes something or changes an account")
    elif first in _FETCH or given.unsure:
        call.note("external", "caution", "fetches packages and runs what they bring")
        for value in given.values("-t", "--target", "--prefix"):
            call.scene.write(value, "installs packages")
        if given.has("-g", "--global", "--user", "--break-system-packages"):
            call.note("external", "dangerous", "installs packages outside of the workspace")
    elif first == "run" and call.name in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba"):
        call.note("write", "caution", "runs a command of the project")
        rest = call.args[[arg.sure for arg in call.args].index("run") + 1 :]
        inner = options(
            rest, names("-p --python --with --extra --group -n --project --env-file"), leading=True
        ).operands
        if inner:
            call.run(inner)
    else:
        call.note("write", "caution", "runs code of the project")


def fetched(call: Call) -> None:
    """npx and its kin: a program that is fetched and run."""
    call.note("external", "caution", "fetches a program and runs it")


def system_package(call: Call) -> None:
    first = next((arg.text for arg in call.args if not arg.text.startswith("-")), "")
    if first in ("list", "show", "search", "info", "policy", "depends", "rdepends", "--version") and all(
        arg.known for arg in call.args
    ):
        call.note("read", "safe", "only looks")
    else:
        call.note("external", "dangerous", "changes the programs of this machine")


def editor(call: Call) -> None:
    call.note("write", "caution", "changes files")
    for arg in call.args:
        if arg.text.startswith(("+", "-c", "--cmd", "-S", "-s", "-u")) or not arg.known:
            call.note("write", "dangerous", "gives commands to an editor")
        elif not arg.text.startswith("-"):
            call.scene.write(arg, "changes a file")


_INTERPRETERS = names(
    "python python2 python3 pypy pypy3 ipython perl ruby irb node nodejs deno bun php lua luajit Rscript R julia"
    " tclsh wish expect osascript ghci runghc scala groovy java jshell guile racket elixir erl swift pwsh"
    " powershell bc dc"
)
_BUILDERS = names(
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
TABLE: dict[str, Handler] = {
    **dict.fromkeys(_INTERPRETERS, interpreter),
    **dict.fromkeys(_BUILDERS, builder),
    **dict.fromkeys(
        names(
            "pip pip3 pipx uv poetry pipenv pdm hatch rye conda mamba npm pnpm yarn cargo gem bundle composer"
            " opam luarocks cpan cpanm nuget rustup nvm pyenv rbenv asdf mise"
        ),
        package,
    ),
    **dict.fromkeys(names("npx bunx uvx pnpx yarnpkg"), fetched),
    **dict.fromkeys(
        names(
            "apt apt-get aptitude dpkg dnf yum rpm pacman zypper apk brew port snap flatpak nix nix-env nix-shell"
            " emerge pkg softwareupdate"
        ),
        system_package,
    ),
    **dict.fromkeys(names("vi vim nvim view vimdiff gvim"), editor),
}
