"""Read the schema files of a revision from git."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class GitError(Exception):
    """The files of a revision cannot be read. The text says why and what to do."""


@contextmanager
def checkout_schemas(directory: Path, revision: str) -> Iterator[Path]:
    """Yield the path of a temporary copy of the schema directory as it was in a git revision; it is
    deleted afterwards. Raise GitError if git is not installed, ``directory`` is no directory or in
    no repository, or the revision is unknown or has no ``*.yaml`` files there.

    The copy has all YAML files of the repository, so that the directory finds those that it uses by
    a relative path.
    """
    if shutil.which("git") is None:
        raise GitError("git is not installed; install it, or name a directory with --against")
    here = directory.resolve()
    if not here.is_dir():
        raise GitError(f"{directory} is not a directory; name the schemas with --schemas")
    found = _run_git(here, "rev-parse", "--show-toplevel")
    if found.returncode != 0:
        raise GitError(
            f"{directory} lies in no git repository; name a directory instead of the revision {revision}"
        )
    top = Path(found.stdout.decode().strip()).resolve()
    # A revision that begins with a dash would be an option.
    known = _run_git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if known.returncode != 0:
        raise GitError(
            f"{revision} is neither a directory nor a revision of {top}; `git log` lists revisions, "
            "and a shallow clone lacks older ones (git fetch --unshallow --tags)"
        )
    commit = known.stdout.decode().strip()
    archive = _run_git(top, "archive", "--format=tar", commit, "--", ":(glob)**/*.yaml")
    inside = here.relative_to(top)
    with TemporaryDirectory(prefix="codecgen-") as scratch:
        if archive.returncode == 0:
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(scratch, filter="data")
        copy = Path(scratch) / inside
        if archive.returncode != 0 or not copy.is_dir():
            raise GitError(
                f"{revision} has no YAML files in {inside} (from the top of the repository). If the "
                "schemas were added later, name a later revision. If they were moved, name a "
                "directory with the old schemas."
            )
        yield copy


def _run_git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a directory and return its result with captured output. A nonzero exit code is not
    an error. Raise OSError if git cannot be started.

    Variables that git sets for hooks name another repository or its index, so git does not get them.
    """
    return subprocess.run(
        ["git", "-C", str(directory), *arguments],
        env={name: value for name, value in os.environ.items() if name not in _OF_HOOKS},
        capture_output=True,
        check=False,
    )
