"""Disks that are full soon."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(path: Path, size_mb: int) -> Iterator[bool]:
    """A file system in memory of a size; False where nobody lets us mount one."""
    path.mkdir(parents=True)
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(path)]
    allowed = mount is not None and subprocess.run(command, check=False).returncode == 0
    try:
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", "-l", str(path)], check=True)
