"""The groups in which tests are shared out to processes: together what belongs together, the long ones first."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.groups import (
    ALONE,
    LONG,
    LONG_WITH_KERNELS,
    SPARK_AND_SERVERS,
    TOGETHER,
    WITH_SERVERS,
    WITHOUT_KERNELS,
    group,
    ordered,
)
from tests.paths import ROOT

CASE = """
import os
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_it(number):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{name} {{os.getpid()}}\\n")
"""


def test_the_groups_are_there() -> None:
    named = {*LONG, *LONG_WITH_KERNELS, *WITHOUT_KERNELS, *TOGETHER, *WITH_SERVERS, *ALONE}
    assert all((ROOT / name).exists() for name in named - {SPARK_AND_SERVERS})
    assert all(folder.endswith("/") for folder in (*WITHOUT_KERNELS, *TOGETHER))


def test_a_file_is_a_group_and_spark_is_one() -> None:
    assert group("tests/kafka_log/test_a.py::test_x[a::b/c]") == "tests/kafka_log/test_a.py"
    assert group("tests/pyspark_kafka_log/test_a.py::test_x") == group(
        "tests/pyspark_kafka_log/test_b.py::test_y"
    )
    assert (
        group("tests/pyspark_kafka_logs/test_a.py::test_x") == "tests/pyspark_kafka_logs/test_a.py"
    )
    assert (
        group("tests/pyspark_kafka_log/test_java.py::test_x")
        == "tests/pyspark_kafka_log/test_java.py"
    )
    assert {group(f"{file}::test_x") for file in WITH_SERVERS} == {SPARK_AND_SERVERS}


@pytest.mark.parametrize("file", ALONE)
def test_what_is_alone_takes_no_spark_of_others(file: str) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    taken = {argument.arg for function in functions for argument in function.args.args}
    assert not taken & {"spark", "session"}


def test_long_groups_come_first_then_those_without_kernels_then_large_ones() -> None:
    tests = ["tests/test_console_pages.py::x", "tests/a.py::x", "tests/codecgen/test_a.py::x"]
    tests += ["tests/b.py::x", "tests/pyspark_kafka_log/s.py::x", "tests/b.py::y"]
    tests += ["tests/codecgen/runtime/arrow/test_d.py::x"]
    tests += ["tests/laws/test_laws.py::x", "tests/pyspark_kafka_log/r.py::x", "tests/c.py::x"]
    assert ordered(tests) == [
        "tests/pyspark_kafka_log/s.py::x",
        "tests/pyspark_kafka_log/r.py::x",
        "tests/laws/test_laws.py::x",
        "tests/codecgen/test_a.py::x",
        "tests/test_console_pages.py::x",
        "tests/b.py::x",
        "tests/b.py::y",
        "tests/a.py::x",
        "tests/c.py::x",
        "tests/codecgen/runtime/arrow/test_d.py::x",
    ]


@pytest.mark.slow
def test_files_stay_in_one_process_and_spark_too(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    files = {
        "tests/pyspark_kafka_log/test_a.py": 7,
        "tests/pyspark_kafka_log/test_b.py": 7,
        "tests/kafka_log/test_c.py": 9,
    }
    files["tests/kafka_log/test_d.py"] = 8
    for name, count in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CASE.format(count=count, name=name), encoding="utf-8")
    modules = ("changes", "conftest", "groups", "paths", "records", "shares", "tiers", "__init__")
    for name in (f"{module}.py" for module in modules):
        (tmp_path / "tests" / name).write_bytes((ROOT / "tests" / name).read_bytes())
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    seen = tmp_path / "seen.txt"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    roots = [str(tmp_path), environment.get("PYTHONPATH", "")]
    environment |= {"SEEN": str(seen), "PYTHONPATH": os.pathsep.join(filter(None, roots))}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider", "tests"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split() for line in seen.read_text(encoding="utf-8").splitlines()]
    assert len(ran) == sum(files.values())
    by_group: dict[str, set[str]] = {}
    for name, process in ran:
        by_group.setdefault(group(name), set()).add(process)
    assert {name: len(processes) for name, processes in by_group.items()} == {
        "tests/pyspark_kafka_log/": 1,
        "tests/kafka_log/test_c.py": 1,
        "tests/kafka_log/test_d.py": 1,
    }
    assert len({process for _, process in ran}) == 2
