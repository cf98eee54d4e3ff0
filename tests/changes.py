"""Which files differ from the last landed commit, and whose turn it is in CI, as far as git knows it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.paths import ROOT

BASES = ("@{upstream}", "origin/HEAD", "origin/main", "HEAD^")
"""Where the last landed commit is looked for, unless the variable LANDED names it."""


def changed_files(root: Path = ROOT, landed: str | None = None) -> frozenset[str]:
    """Return the files that differ from the last landed commit, relative to `root` with `/`.

    The last landed commit is `landed`, the variable LANDED, or the newest common ancestor with the first of `BASES`
    that is another commit than HEAD. Files that are not committed yet count.

    Returns:
        No files if there is no repository, or the landed commit is not in it (a shallow clone).
    """
    base = find_landed(root, landed or os.environ.get("LANDED"))
    if base is None:
        return frozenset()
    differ = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", base)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if differ is None or new is None:
        return frozenset()
    return frozenset(name for name in (differ + new).split("\0") if name)


def find_landed(root: Path = ROOT, landed: str | None = None) -> str | None:
    """Return the hash of the last landed commit; None if git does not know it."""
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    for name in [landed] if landed else BASES:
        base = _git(root, "merge-base", "HEAD", name)
        if base and base != head:
            return base.strip()
    return None


def find_turn(root: Path = ROOT) -> int | None:
    """Return which half of the slow tests CI runs: 0 or 1, by the hash of HEAD, or the variable TURN. None stands for both: TURN is
    `both`, or there is no repository.
    """
    given = os.environ.get("TURN") or _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    return None if given in (None, "both") else int(given, 16) % 2


def find_release(root: Path = ROOT) -> str | None:
    """Return the newest release tag (`v1.2.3`) before HEAD; None if git knows none."""
    found = _git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    return None if found is None else found.strip()


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints; None if it fails or is not installed."""
    command: Sequence[str] = ("git", "-C", str(root), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape")
