"""Pages with commands: these are run, and what they print stands below them.

``python -m tests.console_pages`` writes the outputs anew: read what changed before you keep it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from codecgen.__main__ import main as codecgen
from kafka_log.cli import main as kafka_log
from tests.paths import ROOT

VALUES = ROOT / "docs" / "parse-and-build.md"
TOOL = sorted((ROOT / "docs" / "tool").glob("*.md"))
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
TASKS = ROOT / "docs" / "tasks.md"
README = ROOT / "README.md"
PAGES = (README, TASKS, VALUES, *TOOL, *HOW_TO)
OF_SPARK = frozenset(
    page for page in HOW_TO if page.stem.startswith(("from-zero-to-delta", "follow-a-broker"))
)
"""Those on which Spark runs: their Python is of programs that commands start."""
_OF_VALUES = {
    "schemas": "schemas",
    "segment.log": "samples/kafka-2.8/mixed-0/00000000000000000000.log",
    "compressed.log": "samples/kafka-2.8/codecs-3/00000000000000000000.log",
    "damaged.log": "tests/vectors/malformed/v2-none-record-headers-count-too-large.log",
}
_OF_TOOL = {"samples": "samples"}
"""What the commands find beside them."""
_COMMANDS = {"codecgen": "-m codecgen", "kafka-log": "-m kafka_log", "python": ""}
"""What they give to the Python that runs this."""
_PROGRAM = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```$", re.M | re.S)
"""Python that begins with the name of its file."""
_BLOCK = re.compile(r"(?<=```console\n).*?(?=^```$)", re.M | re.S)


_MAINS: dict[str, Callable[[], int]] = {"codecgen": codecgen, "kafka-log": kafka_log}
_PLAIN = re.compile(r"(?:codecgen|kafka-log) [^|;&<>$`\"'*?{}()\\~#\n]*")
"""A command of ours alone, in which a shell has nothing to do."""
_PIPED = re.compile(rf"({_PLAIN.pattern})\| ([^&;<>]*)")
_CODE = re.compile(rf'({_PLAIN.pattern}); echo "exit code \$\?"')
"""The same with its output given to a program, or with its exit code."""
WIDTH = 100


@contextlib.contextmanager
def make_workplace(links: Mapping[str, str], width: int | None) -> Iterator[Path]:
    """Make a directory of its own for commands: with our commands, and with links to parts of the repository.

    ``width`` is the variable COLUMNS; None: it is not set, as in a pipe or a job.
    """
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    if width is not None:
        environment["COLUMNS"] = str(width)
    with (
        tempfile.TemporaryDirectory() as directory,
        patch.dict(os.environ, environment, clear=True),
    ):
        root = Path(directory)
        for name, path in links.items():
            (root / name).symlink_to(ROOT / path)
        (root / ".bin").mkdir()
        for name, arguments in _COMMANDS.items():
            tool = root / ".bin" / name
            tool.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8"
            )
            tool.chmod(0o755)
        yield root


def run_session(commands: Sequence[str], width: int) -> list[str]:
    """Return what commands print that run one after the other beside the samples, in a terminal of ``width`` columns."""
    with make_workplace(_OF_TOOL, width) as root:
        return [_printed(root, command) for command in commands]


def current(page: Path, *, processes: bool = False, width: int | None = WIDTH) -> str:
    """Return a page with what its commands print now. They run one after the other, in a directory of their own.

    What needs no shell runs in this process, which takes a tenth of the time; with ``processes`` it is run as people do.
    """
    with make_workplace(_OF_VALUES if page == VALUES else _OF_TOOL, width) as root:
        text = page.read_text(encoding="utf-8")
        for code, name in _PROGRAM.findall(text):
            (root / name).write_text(code, encoding="utf-8")
        run = _by_bash if processes or page in OF_SPARK else _printed
        return _BLOCK.sub(lambda block: _block(root, block[0], run), text)


def _block(root: Path, block: str, run: Callable[[Path, str], str]) -> str:
    """A block whose commands (``$ ...``) have been run; a line that ends with a backslash goes on."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.M)
    return "".join(f"$ {command}\n{run(root, command)}" for command in commands)


def _printed(root: Path, command: str) -> str:
    plain = command.replace("\\\n", " ")
    if _PLAIN.fullmatch(plain):
        return _here(root, plain)[1]
    if found := _CODE.fullmatch(plain):
        code, text = _here(root, found[1])
        return f"{text}exit code {code}\n"
    if found := _PIPED.fullmatch(plain):
        errors = io.BytesIO()
        _, text = _here(root, found[1], errors)
        if not errors.getvalue():  # they would stand somewhere among the lines
            return _by_bash(root, found[2], text)
    return _by_bash(root, command)


def _here(root: Path, command: str, errors: io.BytesIO | None = None) -> tuple[int, str]:
    """The exit code of a command of ours that is run in this process, and what it prints; ``errors`` takes its errors apart."""
    name, *arguments = shlex.split(command)
    printed = io.BytesIO()
    screen, other = (
        io.TextIOWrapper(to, encoding="utf-8", newline="\n", write_through=True)
        for to in (printed, printed if errors is None else errors)
    )
    code = 0
    with (
        contextlib.chdir(root),
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen if errors is None else other),
        patch.object(sys, "argv", [name, *arguments]),
    ):
        try:
            code = _MAINS[name]()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 0
    text = printed.getvalue().decode("utf-8").replace("\r\n", "\n")
    other.detach()
    return code, text


def _by_bash(root: Path, command: str, given: str | None = None) -> str:
    paths = [str(root / ".bin"), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=root,
        input=given,
        env=os.environ
        | {
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": os.pathsep.join(
                str(ROOT / name) for name in ("generator", "generated", "pipeline")
            ),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONUTF8": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
    )
    return done.stdout


def main() -> None:
    """All pages, or those that the arguments name by their stems."""
    for page in PAGES:
        if sys.argv[1:] and page.stem not in sys.argv[1:]:
            continue
        page.write_text(current(page), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
