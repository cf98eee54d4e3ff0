"""A standalone cluster on this machine whose workers know nothing of the tests' Python, and environments to ship to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pyspark
from packaging.requirements import Requirement

from tests.paths import ROOT

SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE_S = 240


def clean(java_home: Path, **given: str) -> dict[str, str]:
    """The variables of a machine where nobody has told Python anything."""
    foreign = ("PYTHON", "PYSPARK", "SPARK", "KAFKA_CODECS", "VIRTUAL_ENV")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(foreign)}
    homes = {"JAVA_HOME": str(java_home), "SPARK_HOME": str(SPARK_HOME)}
    return kept | homes | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"} | given


@contextmanager
def cluster(scratch: Path, java_home: Path, workers: int = 2) -> Iterator[str]:
    """The URL of a master that has so many workers with a core and a gigabyte each."""
    host = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> Path:
        log = scratch / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        with log.open("wb") as out:
            started.append(
                subprocess.Popen(
                    [*command, *host, *arguments],
                    env=clean(java_home),
                    cwd=scratch,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            )
        return log

    try:
        master = said(start("master", "master.Master"), r"Starting Spark master at (spark://\S+)")
        size = ["--cores", "1", "--memory", "1g", "--work-dir"]
        logs = [
            start(f"worker-{n}", "worker.Worker", *size, str(scratch / f"work-{n}"), master)
            for n in range(workers)
        ]
        for log in logs:
            said(log, r"(Successfully registered)")
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def said(log: Path, pattern: str) -> str:
    """What a process has printed, once it has."""
    end = time.monotonic() + PATIENCE_S
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        assert time.monotonic() < end, text
        time.sleep(0.1)


@dataclass(frozen=True)
class Environments:
    """Pythons of their own, and what is shipped."""

    bare: Path
    """An environment with all that the project depends on, and not with the project."""
    whole: Path
    """A directory with the environment ``environment``, which has the project, and its archive ``environment.tar.gz``."""
    package: Path
    """The project as a zip."""


def environments(scratch: Path) -> Environments:
    """Made of this tree, and of the packages that the tests run with."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*pip, str(scratch), str(ROOT)], check=True)
    (wheel,) = scratch.glob("*.whl")
    bare, whole = scratch / "bare", scratch / "whole"
    for place in (bare, whole / "environment"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        for name in needed("arrow"):
            _copied(name, _packages(place))
    with zipfile.ZipFile(wheel) as found:
        found.extractall(_packages(whole / "environment"))
    with tarfile.open(whole / "environment.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(whole / "environment", ".")
    package = scratch / "kafka_codecs.zip"
    wheel.rename(package)
    return Environments(bare, whole, package)


def zip_packages(path: Path) -> None:
    """Write the packages of this tree into a zip, without building a wheel."""
    with zipfile.ZipFile(path, "w") as out:
        for root in ("generator", "generated", "pipeline"):
            for file in sorted((ROOT / root).rglob("*")):
                if file.is_file() and file.suffix != ".pyc":
                    out.write(file, file.relative_to(ROOT / root))


def needed(extra: str) -> list[str]:
    """The distributions that the project depends on with an extra, and those that they depend on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    left = [*project["dependencies"], *project["optional-dependencies"][extra]]
    names: dict[str, None] = {}
    while left:
        asked = Requirement(left.pop())
        if asked.name in names or (asked.marker and not asked.marker.evaluate({"extra": ""})):
            continue
        names[asked.name] = None
        left += distribution(asked.name).requires or ()
    return list(names)


def _packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def _copied(name: str, to: Path) -> None:
    """A distribution that is installed here; commands and caches are left out."""
    for file in distribution(name).files or ():
        if ".." in file.parts or file.suffix == ".pyc":
            continue
        target = to / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(str(file.locate()), target)


def ran(
    command: Sequence[str | Path], job: str, cwd: Path, env: Mapping[str, str], *arguments: str
) -> dict[str, Any]:
    """What a job prints at its end."""
    path = cwd / "job.py"
    path.write_text(job)
    done = subprocess.run(
        [*map(str, command), str(path), *arguments],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told
