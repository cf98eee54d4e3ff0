"""``codecgen import kafka-json``: Kafka's message definitions as schema files, and the command."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.check.names import LONGEST
from codecgen.cli import COULD_NOT_RUN, FINDINGS, GOOD, main
from codecgen.importers import kafka_json
from codecgen.importers.kafka_names import distinct_parts, file_part, snake
from tests.codecgen.importers import importing
from tests.codecgen.importers.definitions import WEIGHT, definitions, field
from tests.paths import ROOT

# ---------------------------------------------------------------- what is written


def test_the_schema_files_are_those_expected() -> None:
    assert importing.files() == importing.expected()


def test_what_is_left_out_is_said() -> None:
    said = list(kafka_json.lines_about(importing.imported()))
    assert said == [
        "retired, so without a file: GoneRequest",
        "not carried over: default of a float64 (1), deprecatedVersions (1), entityType (1), ignorable (1), "
        "mapKey (1), zeroCopy (1)",
        "in no version, so left out: OrderRequest.Gone, OrderRequest.Unused",
    ]


def test_a_definition_uses_every_key() -> None:
    from codecgen.importers import kafka_reading as reading

    text = "".join(p.read_text("utf-8") for p in importing.DEFINITIONS.rglob("*.json"))
    keys = {*reading.MESSAGE_KEYS, *reading.FIELD_KEYS, *reading.STRUCT_KEYS}
    assert not {key for key in keys if f'"{key}"' not in text} - {"deprecatedVersions"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("TransactionalId", "transactional_id"),
        ("TopicID", "topic_id"),
        ("KRaftVersion", "kraft_version"),
        ("ISRChange", "isr_change"),
        ("protocolType", "protocol_type"),
        ("Ipv4Address", "ipv4_address"),
        ("group-coordinator", "group_coordinator"),
        ("X", "x"),
    ],
)
def test_names(name: str, ours: str) -> None:
    assert snake(name) == ours


@pytest.mark.parametrize(
    ("ways", "parts"),
    [
        ([("a",)], [""]),
        ([()], [""]),
        ([("metadata", "src", "m"), ("storage", "src", "m")], ["metadata", "storage"]),
        ([("k", "a", "m"), ("k", "b", "m")], ["a", "b"]),
        ([("a", "x"), ("a", "y"), ("b", "x")], ["a_x", "a_y", "b_x"]),
        ([(), ("a",)], ["", "a"]),
    ],
)
def test_directories_are_called_by_what_tells_them_apart(
    ways: list[tuple[str, ...]], parts: list[str]
) -> None:
    assert [distinct_parts(ways)[way] for way in ways] == parts


@pytest.mark.parametrize(
    "name", ["arrow", "con", "schemas", "message_table", "codecgen", "class", "1_group"]
)
def test_files_have_no_name_that_others_need(name: str) -> None:
    """Those of targets, of Windows, of Python, and of the package itself."""
    assert (file_part(name), file_part(f"a_{name}")) == (f"{name}_messages", f"a_{name}")


def test_structs_of_one_name_have_that_of_the_message_in_front(tmp_path: Path) -> None:
    struct = {"name": "Line", "versions": "0+", "fields": []}
    held = {"name": "Lines", "type": "[]Line", "versions": "0+"}
    messages = [
        {"name": name, "fields": [held], "commonStructs": [struct]} for name in ("Order", "Bill")
    ]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    assert "layout: order_line\n" in files["order.yaml"]
    assert "{array: bill_line}" in files["bill.yaml"]
    taken = kafka_json.convert(found, "camel", ["order_line"]).files
    assert "layout: order_line_2\n" in taken["order.yaml"]


def test_names_that_are_too_long_lose_the_first_words_of_the_message(tmp_path: Path) -> None:
    message, struct = "ParcelsOfTheWholeCountryDescribeResponse", "WhatTheParcelHoldsOfEachOfThem"
    held = {"name": "A", "type": struct, "versions": "0+"}
    common = {"name": struct, "versions": "0+", "fields": []}
    messages: list[dict[str, Any]] = [
        {"name": name, "fields": [held], "commonStructs": [common]} for name in (message, "Order")
    ]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    called = re.findall("layout: (.*)", "".join(files.values()))
    assert "country_describe_response_what_the_parcel_holds_of_each_of_them" in called
    assert max(map(len, called)) <= 64


def test_a_struct_whose_place_has_a_taken_name_has_its_own(tmp_path: Path) -> None:
    inner = [{"name": "Weight", "type": "int32", "versions": "0+"}]
    holder = {"name": "Line", "type": "Held", "versions": "0+", "fields": inner}
    messages: list[dict[str, Any]] = [{"name": "Order", "fields": [holder]}, {"name": "OrderLine"}]
    found = kafka_json.find(definitions(tmp_path, *messages))
    files = kafka_json.convert(found, "camel").files
    assert "line: {layout: held}" in files["order.yaml"]
    assert "layout: held\n" in files["order.yaml"]


@pytest.mark.parametrize(
    ("message", "struct", "called"),
    [
        ("Bill", "Line", "line"),
        ("Bill", "Order", "bill_order"),  # a message is called so
        ("Bill", "Bool", "bill_bool"),  # a type is called so
        ("Bill", "Class", "class_2"),  # Python has the word
        ("Bill", "BillOrder", "bill_order"),
        ("Bill", "X" + "x" * (LONGEST - 1), "x" * LONGEST),
        ("LongBill", "X" + "x" * LONGEST, "bill_" + "x" * (LONGEST + 1)),
    ],
)
def test_a_common_struct_is_called(tmp_path: Path, message: str, struct: str, called: str) -> None:
    fields = [{"name": "A", "type": struct, "versions": "0+"}]
    common = {"name": struct, "versions": "0+", "fields": []}
    messages: list[dict[str, Any]] = [
        {"name": message, "fields": fields, "commonStructs": [common]},
        {"name": "Order"},
    ]
    files = kafka_json.convert(kafka_json.find(definitions(tmp_path, *messages)), "camel").files
    names = re.findall("layout: (.*)", files[f"{snake(message)}.yaml"])
    assert called in names and len(set(names)) == len(names)


def test_a_struct_that_begins_with_the_name_of_its_message_has_it_once(tmp_path: Path) -> None:
    fields = [{"name": "A", "type": "BillOrder", "versions": "0+"}]
    common = {"name": "BillOrder", "versions": "0+", "fields": []}
    messages: list[dict[str, Any]] = [
        {"name": "Bill", "fields": fields, "commonStructs": [common]},
        {"name": "BillOrder"},
    ]
    files = kafka_json.convert(kafka_json.find(definitions(tmp_path, *messages)), "camel").files
    assert "layout: bill_order_2\n" in files["bill.yaml"]


@pytest.mark.parametrize(("more", "words"), [(0, "long_bill_"), (1, "bill_")])
def test_as_much_of_the_message_stands_in_front_as_there_is_room_for(
    tmp_path: Path, more: int, words: str
) -> None:
    struct = "X" + "x" * (LONGEST - len("long_bill_") - 1 + more)
    common = {"name": struct, "versions": "0+", "fields": []}
    fields = [{"name": "A", "type": struct, "versions": "0+"}]
    messages: list[dict[str, Any]] = [
        {"name": name, "fields": fields, "commonStructs": [common]} for name in ("LongBill", "B")
    ]
    files = kafka_json.convert(kafka_json.find(definitions(tmp_path, *messages)), "camel").files
    assert f"layout: {words}{struct.lower()}\n" in files["long_bill.yaml"]


def test_names_are_spelled_where_the_manifest_does_not_give_them_back(tmp_path: Path) -> None:
    found = kafka_json.find(definitions(tmp_path, field(name="GrossWeight")))
    camel, snake_ = (kafka_json.convert(found, style).files for style in ("camel", "snake"))
    assert "gross_weight: i32" in camel["parcel.yaml"]
    assert "gross_weight: {type: i32, spelled: grossWeight}" in snake_["parcel.yaml"]


# ---------------------------------------------------------------- the command


def run(*arguments: object) -> int:
    return main(["import", "kafka-json", *map(str, arguments)])


def test_nothing_to_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none", "--out", tmp_path / "out") == COULD_NOT_RUN
    assert (
        "does not exist; name the directory that holds the definitions" in capsys.readouterr().err
    )
    assert run(tmp_path, "--out", tmp_path / "out") == COULD_NOT_RUN
    assert "has no definition (*.json)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_there_are_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = definitions(tmp_path, {}, {"name": "Other"})
    monkeypatch.setattr(kafka_json, "MOST_FILES", 1)
    assert [d.message for d in kafka_json.find(source).findings] == [
        "more than 1 files, or 256 MiB"
    ]


def test_all_findings_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = field(type="int23")
    wrong["fields"].append({"name": "Other", "type": "int8", "versions": "0+", "default": "x"})
    source = definitions(tmp_path / "in", wrong, {"name": "Other", "type": "what"})
    assert run(source, "--out", tmp_path / "out") == FINDINGS
    said = capsys.readouterr().err
    assert '"int23" is not a type' in said
    assert " --> 0.json:1:" in said
    assert '"what" is not a type of a message' in said
    assert "the default is not a number" in said
    assert said.endswith("codecgen: 3 findings\n")
    assert not (tmp_path / "out").exists()


def test_schema_files_are_written_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schemas"
    assert run(importing.DEFINITIONS, "--out", out) == GOOD
    said = capsys.readouterr()
    assert said.out.startswith(f"{out}: 10 messages, 15 files written, 0 unchanged (")
    assert "codecgen: not carried over: " in said.err
    written = {p.relative_to(out).as_posix(): p.read_text("utf-8") for p in out.rglob("*.yaml")}
    assert written == importing.expected()
    assert main(["check", str(out)]) == GOOD


def test_nothing_is_overwritten_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = definitions(tmp_path / "in", field()), tmp_path / "schemas"
    assert run(source, "--out", out) == GOOD
    assert run(source, "--out", out) == GOOD
    assert "0 files written, 1 unchanged" in capsys.readouterr().out
    definitions(source, field(type="int64"), {"name": "Other", **field()})
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert run(source, "--out", out) == COULD_NOT_RUN
    assert "already has parcel.yaml; nothing was written: add --force" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert run(source, "--out", out, "--force") == GOOD
    assert "weight: i64" in (out / "parcel.yaml").read_text("utf-8")
    assert (out / "other.yaml").is_file()


def test_a_link_is_not_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = definitions(tmp_path / "in", field()), tmp_path / "schemas"
    out.mkdir()
    (out / "parcel.yaml").symlink_to(tmp_path / "elsewhere")
    assert run(source, "--out", out, "--force") == COULD_NOT_RUN
    assert "move it away first" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
    assert os.path.lexists(out / "parcel.yaml")


def test_beside_files_of_another_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that other files declare are not used for structs; a clash with a message is a finding."""
    out = tmp_path / "schemas"
    out.mkdir()
    manifest = "language: 1\npackage: shop\ntitle: Shop\nspelling: snake\n"
    (out / "codecgen.yaml").write_text(manifest, "utf-8")
    (out / "mine.yaml").write_text("layout: line\nfields: {a: i8}\n", "utf-8")
    struct = {"name": "Line", "versions": "0+", "fields": [WEIGHT]}
    held = {"name": "AllLines", "type": "[]Line", "versions": "0+"}
    order = {"name": "Order", "fields": [held], "commonStructs": [struct]}
    source = definitions(tmp_path / "in", order)
    assert run(source, "--out", out) == GOOD
    text = (out / "order.yaml").read_text("utf-8")
    assert "all_lines: {array: order_line, spelled: allLines}" in text
    assert (out / "codecgen.yaml").read_text("utf-8") == manifest
    definitions(source, order, {"name": "Line"})
    capsys.readouterr()
    assert run(source, "--out", out) == FINDINGS
    assert "nothing is written" in capsys.readouterr().err
    assert not (out / "line.yaml").exists()


def test_the_example_of_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "import-kafka-json.md").read_text("utf-8")
    blocks = dict(re.findall(r"```(json|yaml)\n(.*?)```", page, re.DOTALL))
    (tmp_path / "ParcelRequest.json").write_text(blocks["json"], "utf-8")
    found = kafka_json.find(tmp_path)
    assert not found.findings
    imported = kafka_json.convert(found, "camel")
    assert imported.files == {"parcel_request.yaml": blocks["yaml"]}
    assert all(f"`{line}`" in page for line in kafka_json.lines_about(imported))


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    out = tmp_path_factory.mktemp("imported")
    assert (
        main(["generate", str(importing.SCHEMAS), "--out", str(out), "--targets", "construct"]) == 0
    )
    sys.path.insert(0, str(out))
    try:
        yield importlib.import_module("kafka_messages")
    finally:
        sys.path.remove(str(out))
        for name in [n for n in sys.modules if n.partition(".")[0] == "kafka_messages"]:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("layout", "value", "data"),
    [
        ("SHELF_KEY", {"group": "g", "type": 3}, "0000 0001 67 03"),
        ("COUNT_KEY", {"group": "", "type": 0}, "0003 0000 00"),
        ("COUNT_VALUE", {"value_version": 0, "version": 1}, "0000 0000000000000001"),
        (
            "COUNT_VALUE",
            {"value_version": 1, "version": 1, "pieces": [2]},
            "0001 0000000000000001 02 00000002 00",
        ),
        ("ENTRY_RECORD_V1", {"amount": 1}, "0000000000000001 00"),
        ("NOTHING_RECORD_V0", {}, "00"),
        (
            "LEDGER_METADATA_RECORD",
            {"frame_version": 1, "version": 1, "body": {"amount": 1, "unknown_tags": []}},
            "01 00 01 0000000000000001 00",
        ),
        ("ORDER_HEADER_V0", {"client": None, "plain": "p"}, "ffff 0001 70"),
        (
            "ORDER_HEADER_V1",
            {"client": "c", "agent": b"a", "plain": "p"},
            "0001 63 00000001 61 02 70 00",
        ),
        (
            "ORDER_HEADER_V2",
            {"client": "c", "agent": None, "plain": "p"},
            "0001 63 ffffffff 02 70 00",
        ),
        ("ORDER_HEADER_V3", {"client": None, "agent": None, "plain": "p"}, "ffff 00 02 70 00"),
        ("PARTS_V4", {"tagged_number": 2}, "01 00 04 00000002"),
        ("PARTS_V3", {"number": 1}, "00000001 00"),
    ],
)
def test_bytes_are_those_of_kafka(
    codecs: Any, layout: str, value: dict[str, Any], data: str
) -> None:
    codec, whole = getattr(codecs, layout), bytes.fromhex(data)
    if layout.endswith("METADATA_RECORD"):
        value = {"api_key": 0, **value}
    assert codec.build(value) == whole
    parsed = codec.parse(whole)
    assert {name: parsed[name] for name in value} == value
    assert codec.build(parsed) == whole


def test_a_choice_tells_keys_apart(codecs: Any) -> None:
    found = codecs.STOCK_COORDINATOR_KEY.parse(bytes.fromhex("0003 0001 67 05"))
    assert (int(found.key_type), found.group, found.type) == (3, "g", 5)
