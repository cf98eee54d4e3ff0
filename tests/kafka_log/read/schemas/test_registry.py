"""Registries built from records: what each kind of record does, and records that are invalid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.read.schemas.registry import (
    MAX_PROBLEMS,
    MAX_REFERENCES,
    RegistryBuilder,
    SchemaError,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
    parse_object,
)


def schema_key(subject: str, version: int) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def schema_record(subject: str, version: int, number: int, text: str = '"int"', **more: Any) -> Any:
    value = {"subject": subject, "version": version, "id": number, "schema": text, **more}
    return schema_key(subject, version), value


def built(*records: tuple[Any, Any]) -> SchemaRegistry:
    builder = RegistryBuilder()
    for offset, (key, value) in enumerate(records):
        name, data = (
            x if isinstance(x, bytes) or x is None else json.dumps(x).encode() for x in (key, value)
        )
        builder.add_record(name, data, f"offset {offset}")
    return builder.build()


def states(registry: SchemaRegistry) -> dict[tuple[str, int, int], str]:
    return {(v.subject, v.version, v.id): v.state for v in registry.versions}


def test_kinds_of_records() -> None:
    registry = built(
        ({"keytype": "NOOP", "magic": 0}, None),
        ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
        ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "READWRITE"}),
        ({"keytype": "SOMETHING_NEW"}, {"x": 1}),
        schema_record("a", 1, 1),
        schema_record("a", 2, 2, '"long"', schemaType="AVRO"),
        schema_record("p", 1, 3, "syntax", schemaType="PROTOBUF"),
        schema_record("soft", 1, 4, deleted=True),
        schema_record("b", 1, 5),
        schema_record("b", 2, 6, '"long"'),
        schema_record("b", 3, 7, '"string"'),
        ({"keytype": "DELETE_SUBJECT", "subject": "b", "magic": 0}, {"subject": "b", "version": 2}),
        schema_record("c", 1, 8),
        (schema_key("c", 1), None),
        schema_record("d", 1, 9),
        schema_record("d", 2, 10),
        ({"keytype": "CLEAR_SUBJECT", "subject": "d", "magic": 0}, {"subject": "d"}),
        (schema_key("nobody", 1), None),
        ({"keytype": "DELETE_SUBJECT", "subject": "a", "magic": 0}, None),
    )
    assert registry.problems == ()
    assert states(registry) == {
        ("a", 1, 1): "registered",
        ("a", 2, 2): "registered",
        ("p", 1, 3): "registered",
        ("soft", 1, 4): "deleted",
        ("b", 1, 5): "deleted",
        ("b", 2, 6): "deleted",
        ("b", 3, 7): "registered",
        ("c", 1, 8): "removed",
        ("d", 1, 9): "removed",
        ("d", 2, 10): "removed",
    }
    assert registry.find_by_id(3).type == "PROTOBUF"
    assert registry.find_by_id(8).text == '"int"'
    assert [v.version for v in registry.subject_versions("b")] == [1, 2, 3]


def test_soft_delete_of_a_version_and_registration_again() -> None:
    """The registry writes the record again with ``deleted``."""
    registry = built(schema_record("a", 1, 1), schema_record("a", 1, 1, deleted=True))
    assert states(registry) == {("a", 1, 1): "deleted"}
    registry = built(
        schema_record("a", 1, 1),
        schema_record("a", 1, 1, deleted=True),
        (schema_key("a", 1), None),
        schema_record("a", 1, 1),
    )
    assert states(registry) == {("a", 1, 1): "registered"}


def test_another_schema_in_the_place_of_a_version() -> None:
    registry = built(schema_record("a", 1, 1), schema_record("a", 1, 2, '"long"'))
    assert states(registry) == {("a", 1, 1): "removed", ("a", 1, 2): "registered"}
    assert registry.find_by_id(1).text == '"int"'
    assert registry.find_version("a", 1).id == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", None),
        (b"text", None),
        (b"\xff\xfe", None),
        (b"[]", None),
        (b"{}", None),
        ({"keytype": 1}, None),
        ({"keytype": "SCHEMA"}, None),
        ({"keytype": "SCHEMA", "subject": "a", "version": True}, None),
        ({"keytype": "SCHEMA", "subject": "a", "version": 0}, None),
        ({"keytype": "SCHEMA", "subject": "a", "version": 1.0}, None),
        ({"keytype": "SCHEMA", "subject": "a", "version": 1 << 31}, None),
        (schema_key("a", 1), b"{"),
        (schema_key("a", 1), b"[" * 100_000),
        (schema_key("a", 1), {"subject": "a", "version": 1, "id": 1}),
        (schema_key("a", 1), {"subject": "a", "version": 1, "id": -1, "schema": ""}),
        (schema_key("a", 1), {"subject": "a", "version": 2, "id": 1, "schema": ""}),
        (schema_key("a", 1), {"subject": "b", "version": 1, "id": 1, "schema": ""}),
        schema_record("a", 1, 1, "\ud800"),
        schema_record("a", 1, 1, schemaType=7),
        schema_record("a", 1, 1, references={}),
        schema_record("a", 1, 1, references=[1]),
        schema_record("a", 1, 1, references=[{"name": "x"}]),
        schema_record("a", 1, 1, references=[{}] * (MAX_REFERENCES + 1)),
        ({"keytype": "DELETE_SUBJECT", "subject": "a"}, {"subject": "a"}),
        ({"keytype": "DELETE_SUBJECT"}, {"subject": "a", "version": 1}),
    ],
    ids=str,
)
def test_invalid_records(key: Any, value: Any) -> None:
    registry = built(schema_record("z", 1, 1), (key, value))
    assert states(registry) == {("z", 1, 1): "registered"}
    (problem,) = registry.problems
    assert problem.startswith("offset 1: ")


def test_many_problems() -> None:
    registry = built(*[(None, None)] * (MAX_PROBLEMS + 5))
    assert len(registry.problems) == MAX_PROBLEMS + 1
    assert registry.problems[-1] == "5 more records of the registry are invalid"


@given(
    st.binary(max_size=30)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=6,
    ).map(lambda x: json.dumps(x).encode())
)  # fmt: skip
def test_any_bytes(data: bytes) -> None:
    """A record is applied or a problem; nothing is raised."""
    for key in (data, json.dumps(schema_key("a", 1)).encode()):
        builder = RegistryBuilder()
        builder.add_record(key, data, "here")
        assert all(p.startswith("here: ") for p in builder.build().problems)


def test_a_text_that_is_too_long() -> None:
    with pytest.raises(SchemaError, match="more than the 16,777,216"):
        parse_object(b" " * ((16 << 20) + 1))


# ---------------------------------------------------------------- ids


def version(subject: str, number: int, text: str = "x", **more: Any) -> SchemaVersion:
    return SchemaVersion(subject, more.pop("version", 1), number, "AVRO", text, **more)


def test_an_id_of_several_subjects() -> None:
    registry = SchemaRegistry([version("a", 1), version("b", 1)])
    assert registry.find_by_id(1, "b").subject == "b"
    assert registry.find_by_id(1, "a").subject == "a"
    assert registry.find_by_id(1).text == "x"
    with pytest.raises(SchemaError, match="no schema with id 2 is registered"):
        registry.find_by_id(2)


def test_an_id_of_schemas_that_differ() -> None:
    registry = SchemaRegistry([version("a", 1, "x"), version("b", 1, "y")])
    assert registry.find_by_id(1, "b").text == "y"
    with pytest.raises(SchemaError, match="id 1 belongs to several schemas that differ"):
        registry.find_by_id(1, "c")


def test_an_id_of_several_contexts() -> None:
    """Each context has ids of its own. Frames do not name the context."""
    registry = SchemaRegistry([version(":.lab:a", 1, "lab"), version("a", 1, "default"), version(":.lab:b", 2, "b")])  # fmt: skip
    assert registry.find_by_id(1).text == "default"
    assert registry.find_by_id(1, ":.lab:a").text == "lab"
    assert registry.find_by_id(2).text == "b"


def test_a_removed_schema_does_not_make_an_id_ambiguous() -> None:
    registry = SchemaRegistry([version("a", 1, "old", state="removed"), version("b", 1, "new")])
    assert registry.find_by_id(1, "c").text == "new"
    assert registry.find_by_id(1, "a").text == "old"


def test_guids() -> None:
    registry = SchemaRegistry([version("a", 1, guid="g"), version("b", 2, "y", guid="h"), version("c", 3, "z", guid="h")])  # fmt: skip
    assert registry.find_by_guid("g").id == 1
    with pytest.raises(SchemaError, match="no schema with GUID i"):
        registry.find_by_guid("i")
    with pytest.raises(SchemaError, match="GUID h belongs to several"):
        registry.find_by_guid("h")


# ---------------------------------------------------------------- references


def refers(subject: str, number: int, *others: tuple[str, str]) -> SchemaVersion:
    references = tuple(SchemaReference(name, other, 1) for name, other in others)
    return version(subject, number, subject, references=references)


def test_references_come_after_what_they_need() -> None:
    top = refers("top", 1, ("left", "left"), ("right", "right"))
    registry = SchemaRegistry([top, refers("left", 2, ("base", "base")), refers("right", 3, ("base", "base")), refers("base", 4)])  # fmt: skip
    assert [name for name, _ in registry.resolve_references(top)] == ["base", "left", "right"]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "subject 'x' has no version 1"),
        ([refers("x", 2, ("y", "y")), refers("y", 3, ("x", "x"))], "refers to itself"),
        ([refers("x", 2, ("top", "top"))], "refers to itself"),
        ([refers("x", 2, ("x", "y")), refers("y", 3)], "two schemas by the name 'x'"),
    ],
)
def test_wrong_references(others: list[SchemaVersion], message: str) -> None:
    top = refers("top", 1, ("x", "x"))
    registry = SchemaRegistry([top, *others])
    with pytest.raises(SchemaError, match=message):
        registry.resolve_references(top)


def test_too_many_references() -> None:
    """A chain, in which no schema has many of its own."""
    chain = [refers(str(i), i, (str(i + 1), str(i + 1))) for i in range(MAX_REFERENCES + 9)]
    registry = SchemaRegistry([*chain, refers(str(MAX_REFERENCES + 9), 1)])
    with pytest.raises(SchemaError, match="more than 1000 schemas"):
        registry.resolve_references(chain[0])
    assert len(registry.resolve_references(chain[10])) == MAX_REFERENCES - 1
