"""Pages with commands: these are run, and what they print stands below them.

``python -m tests.console_pages`` writes the outputs anew: read what changed before you keep it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.paths import ROOT

VALUES = ROOT / "docs" / "parse-and-build.md"
TOOL = sorted((ROOT / "docs" / "tool").glob("*.md"))
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))
README = ROOT / "README.md"
PAGES = (README, VALUES, *TOOL, *HOW_TO)
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
_BLOCK = re.compile(r"(?<=```console\n).*?(?=^```$)", re.M | re.S)


def current(page: Path) -> str:
    """A page with what its commands print now. They run one after the other, in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, path in (_OF_VALUES if page == VALUES else _OF_TOOL).items():
            (root / name).symlink_to(ROOT / path)
        (root / ".bin").mkdir()
        for name, arguments in _COMMANDS.items():
            tool = root / ".bin" / name
            tool.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8"
            )
            tool.chmod(0o755)
        text = page.read_text(encoding="utf-8")
        return _BLOCK.sub(lambda block: _block(root, block[0]), text)


def _block(root: Path, block: str) -> str:
    """A block whose commands (``$ ...``) have been run; a line that ends with a backslash goes on."""
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.M)
    return "".join(f"$ {command}\n{_printed(root, command)}" for command in commands)


def _printed(root: Path, command: str) -> str:
    paths = [str(root / ".bin"), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=root,
        env=os.environ
        | {
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": os.pathsep.join(
                str(ROOT / name) for name in ("generator", "generated", "pipeline")
            ),
            "COLUMNS": "100",
            "PYTHONUTF8": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
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
