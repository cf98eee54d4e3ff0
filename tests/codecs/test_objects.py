"""Codecs as Python objects: pickles, copies, names and errors."""

from __future__ import annotations

import copy
import importlib.metadata
import pickle
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import construct
import pytest

import kafka_codecs
from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError, CodecError, ParseError
from codecgen.targets.live_codecs import load_codecs
from kafka_codecs import LOG_ENTRY, MESSAGE_V1, META_PROPERTIES, RECORD_BATCH, RecordBatch
from kafka_codecs.arrow import records as arrow_records
from kafka_codecs.rows import offsets, records
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

OWN = """\
layout: point
versions: 0-1
fields: {version: {type: u8, is: version}, x: u8, y: {type: u8, versions: 1}}
---
layout: step
versions: 0-1
fields: {x: u8, y: {type: u8, versions: 1}}
---
enums: {kind: {doc: Kinds., values: {a: 0, b: 1}}}
---
choice: by_field
by: size
cases: {1: one, 2: two}
---
choice: by_value
given: {kind: kind}
by: kind
cases: {a: one, b: two}
---
layout: one
fields: {size: {type: u8, const: 1}, length: {type: u8, measures: rest}, data: {bytes: rest}}
---
layout: two
fields: {size: {type: u8, const: 2}, length: {type: u8, measures: rest}, points: {array: u8, until: end}}
derived: {twice: {type: i32, is: size + size}}
---
view: data
of: by_field
columns: {data: {type: binary}}
rows: [{of: one, columns: {data: data}}]
"""


def batch() -> RecordBatch:
    return RECORD_BATCH.parse(
        RECORD_BATCH.build({"records": [{"offset_delta": 0, "key": b"k", "value": b"v"}]})
    )


def names_of(package: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(package, name)) for name in package.__all__]


def assert_pickled_by_reference(name: str, thing: Any, dumps: Any) -> None:
    found = pickle.loads(dumps(thing))
    if isinstance(thing, type) or hasattr(thing, "parse"):
        assert found is thing, name
    else:  # a union of classes, or layouts by the value that decides: these compare by identity
        assert found == thing, name


def test_everything_that_the_package_declares_is_pickled_by_reference() -> None:
    for name, thing in names_of(kafka_codecs):
        assert_pickled_by_reference(name, thing, pickle.dumps)
        if hasattr(thing, "parse"):
            assert copy.deepcopy({"codec": thing})["codec"] is thing
            assert copy.copy(thing) is thing


def test_a_package_of_ones_own(tmp_path: Path) -> None:
    package = package_of(OWN, tmp_path, "own_objects", "construct,arrow")
    for name, thing in names_of(package):
        assert_pickled_by_reference(name, thing, pickle.dumps)
    sys.path.insert(0, str(tmp_path / "out"))
    try:
        views = __import__("own_objects.rows.data", fromlist=["DATA"])
        columns = __import__("own_objects.arrow.data", fromlist=["DATA"])
        assert pickle.loads(pickle.dumps(views.DATA)) is views.DATA
        assert pickle.loads(pickle.dumps(columns.DATA)) == columns.DATA
    finally:
        sys.path.remove(str(tmp_path / "out"))


def test_views_are_pickled() -> None:
    for view in (records.RECORDS, offsets.OFFSETS):
        assert pickle.loads(pickle.dumps(view)) is view
    assert pickle.loads(pickle.dumps(arrow_records.RECORDS)) == arrow_records.RECORDS


def test_cloudpickle_ships_a_function_that_names_codecs(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    for name, thing in names_of(kafka_codecs):
        assert_pickled_by_reference(name, thing, cloudpickle.dumps)
    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec(
        "from kafka_codecs import RECORD_BATCH, RecordBatch\n"
        "from kafka_codecs.rows.records import RECORDS\n"
        "def first_key(data):\n"
        "    parsed = RECORD_BATCH.parse(data)\n"
        "    assert isinstance(parsed, RecordBatch) and RECORDS.name == 'records'\n"
        "    return parsed.records[0].key\n",
        notebook,
    )
    sent = tmp_path / "task"
    data = RECORD_BATCH.build({"records": [{"offset_delta": 0, "key": b"k", "value": b"v"}]})
    sent.write_bytes(cloudpickle.dumps((notebook["first_key"], data)))
    code = (
        "import pickle, sys; task, data = pickle.load(open(sys.argv[1], 'rb')); print(task(data))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(sent)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("b'k'\n", "")


def test_processes_take_codecs_as_arguments() -> None:
    data = RECORD_BATCH.build({"records": [{"offset_delta": 0, "key": b"k", "value": b"v"}]})
    with get_context("spawn").Pool(1) as pool:
        parsed = pool.apply(RECORD_BATCH.parse, (data,))
    assert type(parsed) is RecordBatch
    assert parsed == RECORD_BATCH.parse(data)


def test_what_is_parsed_is_copied_and_pickled_with_what_is_derived() -> None:
    parsed = batch()
    for other in (copy.deepcopy(parsed), pickle.loads(pickle.dumps(parsed))):
        assert type(other) is RecordBatch
        assert other == parsed
        assert other.records[0] is not parsed.records[0]
        assert (other.last_offset, other.records[0].offset) == (0, 0)
        other.base_offset = 7
        assert (other.records[0].offset, parsed.records[0].offset) == (7, 0)


def test_codecs_that_no_module_declares_say_so() -> None:
    plan = make_plan(model_of("layout: point\nfields: {x: u8}\n"))
    codecs, _ = load_codecs(plan)
    assert codecs is not None
    with pytest.raises(pickle.PicklingError, match="<Layout point: x> cannot be pickled: no impor"):
        pickle.dumps(codecs.layout(plan.versions["point"][0]))


def test_the_representation_names_the_codec_and_its_fields() -> None:
    assert repr(RECORD_BATCH).startswith("<Layout record_batch: base_offset, batch_length, ")
    assert repr(MESSAGE_V1).startswith("<Layout message@1: offset, message_size, crc, magic, ")
    assert (
        repr(LOG_ENTRY) == "<Choice log_entry by magic: 0 message@0, 1 message@1, 2 record_batch>"
    )
    assert repr(META_PROPERTIES).startswith("<PropertiesFile meta_properties: version, ")
    assert repr(records.RECORDS).startswith("<RowView records: offset, timestamp, ")
    assert repr(offsets.OFFSETS).startswith("<PayloadRows offsets: ")


def test_errors_are_those_of_construct() -> None:
    with pytest.raises(construct.ConstructError) as refused:
        RECORD_BATCH.parse(b"\0" * 30)
    assert isinstance(refused.value, ParseError)
    assert refused.value.path == refused.value.where.path == "batch_length"
    with pytest.raises(construct.ConstructError) as unbuilt:
        RECORD_BATCH.build({"records": [{"key": 7}]})
    assert isinstance(unbuilt.value, BuildError)
    assert construct.Peek(RECORD_BATCH).parse(b"\0" * 61) is None
    assert issubclass(CodecError, construct.ConstructError)


def test_the_package_has_the_version_of_its_distribution() -> None:
    assert kafka_codecs.__version__ == importlib.metadata.version("kafka-codecs")


def test_a_package_that_is_not_installed_has_no_version(tmp_path: Path) -> None:
    package = package_of(OWN, tmp_path, "objects_without_version")
    with pytest.raises(AttributeError, match="no distribution 'objects_without_version' is inst"):
        _ = package.__version__
    assert not hasattr(package, "__version__")
