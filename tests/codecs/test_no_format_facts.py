"""What the log formats are is said in schemas: the pipeline has no version numbers and no single layouts of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import IntEnum

import pytest

import kafka_codecs
from codecgen.runtime.construct import Layout
from kafka_codecs import LOG_ENTRY, Compression, TimestampType
from tests.paths import ROOT

PIPELINE = ROOT / "pipeline"

ALLOWED = {
    "kafka_log/inspect/dump/decoding.py: fields.magic == 0": "the byte before Confluent's schema ids, no version of the log",
}
"""Places that look like a fact about the log formats, with the reason why they are none."""

GIVEN = {
    "LOG_ENTRY": "the choice of all versions",
    "CONTROL_RECORD_KEY": "the key of control records, whatever the version of their batch",
    "CONTROL_RECORD_VALUE": "the value of control records, by the type in the key",
}
"""Codecs of schemas/records that the pipeline imports, with the reason why they are no single version."""

SINGLE = {
    name
    for name in kafka_codecs.__all__
    if str(getattr(getattr(kafka_codecs, name), "source_file", "")).startswith("records/")
    or getattr(kafka_codecs, name) in [case.parsed_class for case in LOG_ENTRY.cases.values()]
} - set(GIVEN)
"""Layouts of single versions, and of what lies in them."""


LAYOUTS = [
    thing
    for name in kafka_codecs.__all__
    if isinstance(thing := getattr(kafka_codecs, name), Layout)
]
ABSENT = {f.name for layout in LAYOUTS for f in layout.fields if f.absent is not None}
"""Fields with a number that says that there is no value."""

ENUMS = {
    name: enum
    for name in kafka_codecs.__all__
    if isinstance(enum := getattr(kafka_codecs, name), type) and issubclass(enum, IntEnum)
}
LABELS = {
    member.label
    for enum in (Compression, TimestampType)
    for member in enum
    if member.label != "none"
}
"""How documents write the names of numbers that versions have."""


def facts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each fact about the log formats in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("kafka_codecs"):
            for alias in node.names:
                if alias.name in SINGLE:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.Attribute) and node.attr in SINGLE:
            if ast.unparse(node).startswith("kafka_codecs."):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_magic, sides)) and any(map(_is_number, sides)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(map(_is_magic, targets)) and _is_number(node.value):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.keyword):
            if node.arg is not None and "magic" in node.arg.lower() and _is_number(node.value):
                yield node.value.lineno, ast.unparse(node)
        elif isinstance(node, ast.arguments):
            given = [*node.posonlyargs, *node.args]
            pairs = [*zip(given[::-1], node.defaults[::-1], strict=False)]
            pairs += [(a, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d]
            for argument, default in pairs:
                if "magic" in argument.arg.lower() and _is_number(default):
                    yield default.lineno, f"{argument.arg}={ast.unparse(default)}"
        elif isinstance(node, ast.Match) and _is_magic(node.subject):
            yield node.lineno, ast.unparse(node.subject)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "len":
            if ast.unparse(node.args[0]) in ENUMS:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and (_is_pair(key, value) or _names_number(key, value)):
                    yield key.lineno, f"{ast.unparse(key)}: {ast.unparse(value)}"
        for name, value in _settings(node):
            if _is_minus_one(value) and _may_be_absent(name):
                yield value.lineno, f"{name}: {ast.unparse(value)}"


def _settings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with the values that they are given, or compared with."""
    match node:
        case ast.Assign(targets=[*targets], value=value):
            yield from ((ast.unparse(target), value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield ast.unparse(target), value
        case ast.keyword(arg=str(name), value=value):
            yield name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value
        case ast.Compare(left=left, comparators=[*others]):
            sides = [left, *others]
            yield from ((ast.unparse(a), b) for a in sides for b in sides if a is not b)


def _may_be_absent(name: str) -> bool:
    """Return whether a variable, an attribute or a column has the name of a field that can be absent (``NO_SEQUENCE``)."""
    word = re.split(r"\W+", name.lower().rstrip(")]'\""))[-1]
    whole, kind = word.removeprefix("no_"), word.startswith("no_")
    return any(whole == field or (kind and field.endswith(f"_{whole}")) for field in ABSENT)


def _is_minus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-1"


def _is_pair(key: ast.expr, value: ast.expr) -> bool:
    """Return whether a dict gives a version, or a magic byte, a number."""
    name = key.value if isinstance(key, ast.Constant) else None
    is_version = isinstance(name, str) and (name == "version" or _is_named(name))
    return is_version and _is_number(value)


def _names_number(key: ast.expr, value: ast.expr) -> bool:
    """Return whether a dict says what a number of an enum is called."""
    return _is_number(key) and isinstance(value, ast.Constant) and value.value in LABELS


def _is_magic(node: ast.expr) -> bool:
    """Return whether an expression is a magic byte, the number of a codec or a kind of timestamp, or a column of those, by its name."""
    if isinstance(node, ast.Name):
        return _is_named(node.id)
    if isinstance(node, ast.Attribute):
        return _is_named(node.attr)
    if isinstance(node, ast.Subscript):
        return _is_magic(node.value) or _is_magic(node.slice)
    if isinstance(node, ast.Call):
        return any(map(_is_magic, node.args)) or _is_magic(node.func)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_named(node.value)


def _is_named(name: str) -> bool:
    return "magic" in name.lower() or name in ("codec", "timestamp_type")


def _is_number(node: ast.expr) -> bool:
    """Return whether an expression is made of numbers alone."""
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(map(_is_number, node.elts))
    if isinstance(node, ast.Call):
        return bool(node.args) and all(map(_is_number, node.args))
    return isinstance(node, ast.Constant) and type(node.value) is int


@pytest.mark.slow
def test_the_pipeline_has_no_fact_about_versions() -> None:
    found = {}
    for path in sorted(PIPELINE.rglob("*.py")):
        name = path.relative_to(PIPELINE).as_posix()
        for line, text in facts(path.read_text("utf-8")):
            found[f"{name}: {text}"] = line
    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}
    assert ALLOWED.keys() <= found.keys(), "a place that is allowed is gone"


def test_what_is_given_is_used() -> None:
    """The list of exceptions is no longer than it has to be."""
    text = "".join(path.read_text("utf-8") for path in PIPELINE.rglob("*.py"))
    assert [name for name in GIVEN if name not in text] == []
    assert {"RECORD_BATCH", "MESSAGE", "MESSAGE_V0", "RECORD", "RecordBatch"} <= SINGLE


@pytest.mark.parametrize(
    "source",
    [
        "from kafka_codecs import RECORD_BATCH",
        "from kafka_codecs.records.record import RECORD",
        "import kafka_codecs\nkafka_codecs.MESSAGE_V1.parse(b'')",
        "NEWEST_MAGIC = 2",
        "MAGIC: int = 2",
        "is_old = headers.magic < 2",
        "is_old = 2 > headers['magic']",
        "is_old = numbers(headers, 'magic') >= 2",
        "is_old = batch.magic in (0, 1)",
        "wrong = batch.magic != -1",
        "encode(rows, magic=2)",
        "def write(magic=2): ...",
        "def write(*, magic: int = 2): ...",
        "match batch.magic:\n    case 2: ...",
        "is_plain = numbers(rows, 'codec') == 0",
        "by_broker = header.timestamp_type == 1",
        "is_known = numbers(headers, 'codec') < len(Compression)",
        "layout.build({'version': 1, 'entries': entries})",
        "build({'magic': 2})",
        "TIMESTAMP_TYPES = {0: 'CreateTime', 1: 'LogAppendTime'}",
        "CODECS = {3: 'lz4'}",
        "NO_PRODUCER = {'producer_id': -1}",
        "NO_SEQUENCE = -1",
        "NO_EPOCH: int = -1",
        "last_sequence: int = -1",
        "one.current_txn_first_offset = -1",
        "is_plain = header.producer_id == -1",
        "is_plain = -1 != headers['producer_id']",
        "encode(rows, leader_epoch=-1)",
    ],
)
def test_facts_are_seen(source: str) -> None:
    assert list(facts(source))


@pytest.mark.parametrize(
    "source",
    [
        "from kafka_codecs import LOG_ENTRY, OFFSET_INDEX_ENTRY",
        "is_known = batch.magic in VERSIONS",
        "encode(rows, magic=None)",
        "def write(magic: int = NEWEST): ...",
        "count == 2",
        "count = -1",
        "found = {'position': -1}",
        "NAMES = {0: 'zero'}",
        "build({'version': newest})",
        "last = offsets[-1]",
    ],
)
def test_nothing_else_is_taken_for_a_fact(source: str) -> None:
    assert not list(facts(source))
