"""docs/parse-and-build.md: its commands are run, and what they print stands below them.

``python -m tests.codecgen.values_page`` writes the outputs anew: read what changed before you keep it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.paths import ROOT

PAGE = ROOT / "docs" / "parse-and-build.md"
FILES = {
    "schemas": "schemas",
    "segment.log": "samples/kafka-2.8/mixed-0/00000000000000000000.log",
    "compressed.log": "samples/kafka-2.8/codecs-3/00000000000000000000.log",
    "damaged.log": "tests/vectors/malformed/v2-none-record-headers-count-too-large.log",
}
"""What the commands find beside them."""
_BLOCK = re.compile(r"(?<=```console\n).*?(?=^```$)", re.M | re.S)


def current() -> str:
    """The page with what its commands print now. They run one after the other, in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name, path in FILES.items():
            (root / name).symlink_to(ROOT / path)
        tool = root / ".bin" / "codecgen"
        tool.parent.mkdir()
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m codecgen "$@"\n', encoding="utf-8")
        tool.chmod(0o755)
        text = PAGE.read_text(encoding="utf-8")
        return _BLOCK.sub(lambda block: _block(root, block[0]), text)


def _block(root: Path, block: str) -> str:
    """A block whose commands (``$ ...``) have been run; a line that ends with a backslash goes on."""
    commands = re.findall(r"^\$ (.*(?:\\\n.*)*)$", block, re.M)
    return "".join(f"$ {command}\n{_printed(root, command)}" for command in commands)


def _printed(root: Path, command: str) -> str:
    paths = [str(root / ".bin"), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=root,
        env=os.environ
        | {
            "PATH": os.pathsep.join(paths),
            "PYTHONPATH": str(ROOT / "generator"),
            "PYTHONUTF8": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
    )
    return done.stdout


def main() -> None:
    text = current()
    PAGE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
