"""Values decoded by a layout of a package that codecgen generated from a user's own YAML."""

from __future__ import annotations

import importlib
import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafka_log
from kafka_log import LogDirectory, write_log
from kafka_log.cli import main
from kafka_log.read.schemas.layouts import LayoutDecoder, load_layout
from tests.support.own_format import generate

READING: dict[str, Any] = {
    "station": "oslo",
    "is_outside": True,
    "taken_at": 2**63,
    "temperature": -5,
    "sky": "cloudy",
    "id": uuid.UUID(int=5),
    "winds": [{"speed": 3, "direction": 90}],
    "flags": {"night": True, "force": 3},
    "note": None,
}
DECODED = READING | {"id": "00000000-0000-0000-0000-000000000005"}
NEXT = "; the value has another format, or is damaged: name its layout (--decode), or read its bytes (--decode none)"


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The generated package, imported."""
    place = str(generate(tmp_path_factory.mktemp("own")))
    sys.path.insert(0, place)
    yield importlib.import_module("station_codecs")
    sys.path.remove(place)
    for name in [name for name in sys.modules if name.partition(".")[0] == "station_codecs"]:
        del sys.modules[name]


@pytest.fixture
def values(codecs: ModuleType) -> list[bytes | None]:
    """A value, a tombstone, one that is cut off, one with a byte after it, and an empty one."""
    data: bytes = codecs.READING.build(READING)
    return [data, None, data[:-1], data + b"x", b""]


@pytest.fixture
def log(values: list[bytes | None], tmp_path: Path) -> Path:
    """A topic of these values."""
    keys = pa.array([b"k%d" % i for i in range(len(values))], pa.binary())
    table = pa.table({"key": keys, "value": pa.array(values, pa.binary())})
    write_log(tmp_path / "log", table, topic="readings")
    return tmp_path / "log"


REASONS = [
    None,
    None,
    f"it is no station_codecs:reading: 1 byte is needed, 0 are left (field note, byte 38){NEXT}",
    f"it is no station_codecs:reading: 1 byte follows the reading (byte 39){NEXT}",
    f"it is no station_codecs:reading: 1 byte is needed, 0 are left (field station, byte 0){NEXT}",
]


def test_scan(log: Path, values: list[bytes | None]) -> None:
    """Values are a struct, keys stay bytes, and no row is lost."""
    table = kafka_log.read_table(log, ["key", "value"], decode="station_codecs:reading")
    assert table.column_names == [
        *("key", "value", "value_schema_id", "value_undecoded", "value_problem")
    ]
    assert table.column("key").to_pylist()[0] == b"k0"
    assert table.column("value").to_pylist() == [DECODED, *[None] * 4]
    assert table.column("value_undecoded").to_pylist() == [None, None, *values[2:]]
    assert table.column("value_problem").to_pylist() == REASONS
    assert pa.types.is_uint64(table.schema.field("value").type.field("taken_at").type)


def test_only_keys(log: Path) -> None:
    table = kafka_log.read_table(log, ["key"], decode="station_codecs:reading")
    assert table.column_names == ["key"]


@pytest.mark.parametrize("decode", ["station_codecs:reading", "value=station_codecs:reading"])
def test_dump(log: Path, decode: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["dump", str(log), "--decode", decode]
    assert main([*arguments, "--format", "jsonl", "--columns", "value"]) == 1
    printed = capfd.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert rows[0] == {"value": DECODED, "value_problem": None}
    assert [row["value_problem"] for row in rows] == REASONS
    assert rows[4]["value"] == "" and "base64" in rows[3]["value"]
    assert "3 values cannot be decoded as station_codecs:reading" in printed.err
    assert main([*arguments, "--offsets", ":2", "--grep", '"sky": "cloudy"']) == 0
    printed = capfd.readouterr()
    assert '"k0"' in printed.out or "0x" in printed.out
    assert '"sky": "cloudy"' in printed.out and len(printed.out.splitlines()) == 2


def test_keys_of_a_dump(
    codecs: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Keys have their own layout; values are then bytes."""
    key = codecs.POSITION.build({"version": 1, "x": 3, "height": 4})
    table = pa.table({"key": pa.array([key]), "value": pa.array([b"text"])})
    write_log(tmp_path, table, topic="moves")
    columns = ["--columns", "key,value", "--format", "jsonl"]
    assert main(["dump", str(tmp_path), "--decode", "key=station_codecs:position", *columns]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "key": {"version": 1, "x": 3, "height": 4},
        "key_problem": None,
        "value": "text",
    }


def test_export(log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(log), "--decode", "station_codecs:reading"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 1
    assert "1 value not decoded, bytes kept: it is no station_codecs" in capfd.readouterr().err
    table = pq.read_table(tmp_path / "out" / "readings-0.parquet")
    assert table.column("value").to_pylist()[0] == DECODED
    assert table.column("value_problem").to_pylist() == REASONS
    [file] = LogDirectory(log).export(tmp_path / "again", decode="station_codecs:reading")
    assert file.rows == 5 and sum(file.undecoded.values()) == 3


def test_sql(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    query = "select value.station s, count(*) n from records where value_problem is null group by 1"
    decode = ["--decode", "station_codecs:reading", "--format", "jsonl"]
    assert main(["sql", str(log), query, *decode]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert {(row["s"], row["n"]) for row in rows} == {("oslo", 1), (None, 1)}


def test_versions_choices_and_recursion(codecs: ModuleType) -> None:
    """Versions and cases have the fields of all; a layout in itself is JSON text."""
    position = codecs.POSITION
    data = [position.build({"version": v, "x": 1, "height": 4}) for v in (1,)]
    data += [position.build({"version": 0, "x": 1}), b"\x02\0\0\0\1"]
    column, _, _, problems = decoded("position", data)
    assert column == [
        {"version": 1, "x": 1, "height": 4},
        {"version": 0, "x": 1, "height": None},
        None,
    ]
    assert "2 is not one of 0, 1 (field version, byte 0)" in problems[2]
    tree = {"name": "a", "children": [{"name": "b", "children": []}]}
    column, *_ = decoded("tree", [codecs.TREE.build(tree)])
    assert column == [{"name": "a", "children": ['{"name": "b", "children": []}']}]


def decoded(layout: str, data: list[bytes | None], show_secrets: bool = False) -> list[list[Any]]:
    """The columns of values."""
    decoder = LayoutDecoder("value", f"station_codecs:{layout}", show_secrets)
    return [c.to_pylist() for c in decoder.decode_columns(pa.array(data, pa.binary()), None)]


def test_secrets(codecs: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are hidden unless asked for, also in bytes that the layout refuses."""
    login = {"user": "ana", "password": "geheim", "pin": 7}
    data = [codecs.LOGIN.build(login), codecs.LOGIN.build(login) + b"x"]
    column, _, undecoded, problems = decoded("message", data)
    fields = {"kind": 1, "size": None, "level": None, "user": "ana"}
    assert column[0] == fields | {"password": "(redacted)", "pin": None}
    assert undecoded == [None, b"(redacted)"] and problems[1] is not None
    column, _, undecoded, _ = decoded("message", data, True)
    assert column[0] == fields | {"password": "geheim", "pin": 7} and undecoded[1] == data[1]
    write_log(tmp_path, pa.table({"value": pa.array(data)}), topic="logins")
    arguments = ["dump", str(tmp_path), "--decode", "station_codecs:message", "--columns", "value"]
    assert main(arguments) == 1
    printed = "".join(capfd.readouterr())
    assert "geheim" not in printed and b"geheim".hex() not in printed
    assert "hidden, because it may contain secrets" in printed
    assert main([*arguments, "--show-secrets"]) == 1
    printed = capfd.readouterr().out
    assert "geheim" in printed and b"geheim".hex() in printed
    table = kafka_log.read_table(tmp_path, ["value"], decode="station_codecs:message")
    assert b"geheim" not in repr(table.to_pylist()).encode()
    options: dict[str, Any] = {"decode": "station_codecs:message", "show_secrets": True}
    assert kafka_log.read_table(tmp_path, ["value"], **options)["value"][0]["pin"].as_py() == 7


WRONG = {
    "no_such_codecs:reading": "there is no package no_such_codecs: install it, or set PYTHONPATH",
    "station_codecs:readin": "has no layout 'readin'; its layouts: inner, login, message",
    "station_codecs:unversioned": "name a version (unversioned_v0, unversioned_v1)",
    "station_codecs:inner": "takes values that no record has (size)",
    "json:dumps": "it is no package that codecgen generated",
    "station_codecs:": "write PACKAGE:LAYOUT",
    "a b:c": "write PACKAGE:LAYOUT",
}


@pytest.mark.parametrize("name", WRONG)
def test_layouts_that_do_not_exist(
    name: str, codecs: ModuleType, log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError) as caught:
        kafka_log.scan(log, decode=name)
    assert WRONG[name] in str(caught.value)
    assert main(["dump", str(log), "--decode", name]) == 2
    assert WRONG[name] in capfd.readouterr().err
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="2"):
        main(["export", str(log), "--decode", name, "--out", str(out)])
    assert WRONG[name] in " ".join(capfd.readouterr().err.split()) and not out.exists()


@pytest.mark.parametrize("option", [{"schemas": "x"}, {"schema_version": 1}])
def test_schemas_that_a_layout_does_not_use(
    option: dict[str, Any], codecs: ModuleType, log: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="are for values of a schema registry"):
        kafka_log.scan(log, decode="station_codecs:reading", **option)
    [(name, value)] = option.items()
    words = ["--decode", "station_codecs:reading", f"--{name.replace('_', '-')}", str(value)]
    assert main(["dump", str(log), *words]) == 2
    assert "for values of a schema registry" in capfd.readouterr().err


FAULTY = """
from codecgen.runtime.construct import Field, Integer, Layout

class Faulty(Layout):
    def parse(self, data, **options):
        return 1 // (data[0] - 1) and {"x": 5}

READING = Faulty("reading", Field("x", Integer(1)))
__all__ = ["READING"]
"""


@pytest.mark.parametrize(
    ("package", "code", "message"),
    [
        ("broken_codecs", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("needing_codecs", "import no_such_module", "needs no_such_module, which is not installed"),
    ],
)
def test_packages_that_cannot_be_imported(
    package: str, code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{package}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_layout(f"{package}:reading")


def test_a_package_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is the reason of the row, which keeps its bytes."""
    (tmp_path / "faulty_codecs.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(tmp_path)
    decoder = LayoutDecoder("value", "faulty_codecs:reading")
    columns = decoder.decode_columns(pa.array([b"\x01", b"\x02"]), None)
    value, _, undecoded, problems = (column.to_pylist() for column in columns)
    assert value == [None, {"x": 5}] and undecoded == [b"\x01", None]
    assert problems[0].startswith("it is no faulty_codecs:reading: ZeroDivisionError: ")
