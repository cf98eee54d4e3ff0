"""What to do after the demo: how to step into its environment, and commands for logs of one's own."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

YOURS = "/var/lib/kafka/data"
"""Stands for the reader's log directory where none was named."""


def entering(venv: Path, here: Path, *, system: str = os.name, shell: str = "") -> list[str]:
    """The command that activates a virtual environment; on Windows one for each of its shells, which it names.

    ``system`` is that of ``os.name``, ``shell`` the value of the variable SHELL.
    """
    shown: PurePath = venv.relative_to(here) if venv.is_relative_to(here) else venv
    if system == "nt":
        scripts = PureWindowsPath(shown) / "Scripts"
        return [f"{scripts}\\Activate.ps1   (PowerShell)", f"{scripts}\\activate.bat   (cmd)"]
    ends = {"fish": ".fish", "csh": ".csh", "tcsh": ".csh"}.get(PurePosixPath(shell).name, "")
    script = shlex.quote((PurePosixPath(shown) / "bin" / f"activate{ends}").as_posix())
    return [f"source {script}" if ends else f". {script}"]


def next_steps(venv: Path, here: Path, logs: Sequence[Path], *, shell: str = "") -> list[str]:
    """Lines that say what to try on ``logs``, which are the reader's own; none: the demo has read the samples."""
    quoted = " ".join(shlex.quote(str(path)) for path in logs) or YOURS
    lines = ["Try next, on your own logs:" if not logs else "Try next:"]
    lines += [f"  {line}" for line in entering(venv, here, shell=shell)]
    lines += [
        f"  kafka-log {verb} {quoted}" for verb in ("ls", "check", "txn --state open", "groups")
    ]
    if not logs:
        lines.append(f"  make demo LOGS={YOURS}   (or: python demo/run.py demo {YOURS})")
    lines.append(
        "kafka-log --help lists the other commands; docs/how-to says what to do about damage."
    )
    return lines
