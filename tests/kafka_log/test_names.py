"""The log layer knows no layout by its name: what it needs of one comes from choices and views."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kafka_codecs
from codecgen.runtime.construct import Layout
from kafka_log.logs import names
from tests.paths import ROOT

PIPELINE = ROOT / "pipeline"
ALLOWED = {
    "CONTROL_RECORD_KEY",  # what a control record says is no matter of its batch
    "OFFSET_INDEX_ENTRY",
    "TIME_INDEX_ENTRY",
    "TRANSACTION_INDEX",  # a file, which is read as a whole
    "PRODUCER_SNAPSHOT_ENTRY",  # what stands for an absent number in another file
    "APICURIO_ID_HEADER",
    "APICURIO_VALUE",
    "GLUE_PROTOBUF_DATA",  # what registries' serializers write around values
    "METADATA_RECORD",  # frames: values of Kafka's own topics are no matter of their batches either
    "REMOTE_LOG_METADATA_RECORD",
}


def imported(path: Path) -> set[str]:
    """The names that a module imports from the codecs."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka_codecs"):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.slow
def test_no_layout_by_name() -> None:
    layouts = {n for n in kafka_codecs.__all__ if isinstance(getattr(kafka_codecs, n), Layout)}
    assert {"RECORD_BATCH", "MESSAGE_V0", "RECORD"} <= layouts
    used = {path: imported(path) & layouts for path in PIPELINE.rglob("*.py")}
    assert set().union(*used.values()) == ALLOWED, used


@pytest.mark.slow
def test_no_layouts_module() -> None:
    paths = sorted(PIPELINE.rglob("*.py"))
    assert len(paths) > 100
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [getattr(node, "module", None) or "", *(a.name for a in node.names)]
                assert not any(n.startswith("kafka_codecs.records") for n in names), path


def test_fields_of_headers_are_spelled_where_they_are_given_out() -> None:
    root = PIPELINE / "kafka_log"
    spelled = {
        path.relative_to(root).as_posix()
        for path in PIPELINE.rglob("*.py")
        if "producer_epoch" in path.read_text("utf-8")
    }
    assert spelled == {
        "inspect/browse/batch_pages.py",
        "inspect/browse/record_pages.py",
        "inspect/browse/records.py",
        "inspect/check/segment_scan.py",  # for whose sequence numbers it asks
        "inspect/check/sequences.py",  # and which epochs these are of
        "inspect/diff/record_comparison.py",  # what is compared
        "inspect/dump/batch_rows.py",
        "inspect/dump/batch_text.py",
        "inspect/dump/json_objects.py",
        "inspect/producers/command.py",
        "inspect/producers/table.py",
        "inspect/report/activity_sections.py",
        "inspect/transactions/table.py",
        "logs/transactions.py",
        "segment/header_columns.py",  # of batches, without their records
        "segment/model.py",
        "write/log_writer.py",  # what is written anew
        "write/producer_states.py",
    }


def names_of_numbers(path: Path) -> list[str]:
    """Literals of a module that give names to numbers, as enums of the schemas do."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Dict) and node.keys:
            pairs = zip(node.keys, node.values, strict=True)
            kinds = {(type(getattr(k, "value", k)), type(getattr(v, "value", v))) for k, v in pairs}
            found += [ast.unparse(node)] if kinds == {(int, str)} else []
    return found


@pytest.mark.slow
def test_numbers_have_their_names_from_the_schemas() -> None:
    found = {path: names_of_numbers(path) for path in PIPELINE.rglob("*.py")}
    assert not {path: texts for path, texts in found.items() if texts}


@pytest.mark.slow
def test_names_of_internal_topics_stand_in_one_module() -> None:
    spelled = set()
    for path in PIPELINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names.INTERNAL_TOPICS:
                spelled.add(path)
    assert spelled == {Path(names.__file__)}
