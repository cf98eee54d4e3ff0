"""SECURITY.md: no bytes of a log are run as code. Modules that could do so are listed with the reason why they do not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

RUN_CODE = frozenset({"eval", "exec", "compile", "__import__"})
"""Built-in functions that make code of a text, or import what a text names."""
MODULES = frozenset(
    {
        "code",
        "dill",
        "joblib",
        "marshal",
        "pickle",
        "pty",
        "runpy",
        "shelve",
        "subprocess",
    }
)
"""Modules that run code or programs, or load objects from bytes."""
ATTRIBUTES = frozenset({"system", "popen", "execv", "execve", "spawnv", "unsafe_load", "full_load"})
WORDS = re.compile(rf"(?<!re\.)\b({'|'.join(sorted(RUN_CODE | MODULES | ATTRIBUTES))})\b")
"""Words of a module that may have such uses. Most modules have none of them, and parsing all would take seconds."""
EXPECTED = {
    "codecgen/evolution/git_source.py": "runs git, with the names that the command line gives",
    "codecgen/targets/live_codecs.py": "runs codecs that codecgen has just generated from schemas",
    "codecgen/runtime/arrow/kept_code.py": "loads machine code that this user's processes compiled and kept",
    "codecgen/runtime/declared.py": "raises PicklingError",
    "kafka_log/read/schemas/protobuf.py": "runs protoc on texts of schemas, in a new directory",
    "pyspark_kafka_log/connector/worker.py": "loads what the driver of the query sends",
    "pyspark_kafka_log/export/spark.py": "loads what the driver of the query sends",
    "pyspark_kafka_log/java.py": "runs java to see its version",
    "pyspark_kafka_log/splits/query_logs.py": "loads what this process has pickled",
}


def find_uses(tree: ast.Module) -> Iterator[str]:
    """Yield the names by which a module runs code or programs, or loads objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in RUN_CODE:
                yield called.id
            elif isinstance(called, ast.Attribute) and called.attr in ATTRIBUTES:
                yield called.attr


@pytest.mark.slow
def test_bytes_are_not_run_as_code() -> None:
    roots = ("generator/codecgen", "generated/kafka_codecs", "pipeline/kafka_log", "pipeline/pyspark_kafka_log")  # fmt: skip
    found = {}
    for root in map(Path, roots):
        for path in (ROOT / root).rglob("*.py"):
            text = path.read_text("utf-8")
            if WORDS.search(text) and (uses := set(find_uses(ast.parse(text)))):
                found[path.relative_to(ROOT / root.parent).as_posix()] = uses
    assert found.keys() == EXPECTED.keys(), found


def test_uses_are_found() -> None:
    text = "import pickle as p\nfrom subprocess import run\neval(x)\nos.system('')\nre.compile('')"
    assert set(find_uses(ast.parse(text))) == {"pickle", "subprocess", "eval", "system"}
