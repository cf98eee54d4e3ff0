"""Random definitions: what Kafka's generator takes becomes schemas without findings."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from codecgen.check import run
from codecgen.importers import kafka_json
from codecgen.schema import loader

LAST = 4
NAMES = (
    "A",
    "B",
    "AB",
    "Value",
    "Values",
    "From",
    "TopicID",
    "TopicId",
    "Version",
    "Type",
    "KRaftA",
)
SCALARS = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "uuid", "float64")
LENGTHY = ("string", "bytes", "records")
DEFAULTS = {
    "bool": ("true", "false"),
    "string": ("", "x: y"),
    "int8": ("-1", "0x7f"),
    "int64": (0, -1),
}


@st.composite
def ranges(draw: st.DrawFn) -> str:
    low = draw(st.integers(0, LAST))
    return draw(
        st.sampled_from((f"{low}+", f"{low}-{draw(st.integers(low, LAST))}", str(low), "0+"))
    )


@st.composite
def fields(draw: st.DrawFn, flexible: int | None, common: list[str], deep: int = 0) -> list[Any]:
    """Fields of a struct: the first one is there in all versions."""
    out: list[dict[str, Any]] = [{"name": "First", "type": "int8", "versions": "0+"}]
    tag = 0
    for name in draw(st.lists(st.sampled_from(NAMES), unique_by=str.lower, max_size=4)):
        one: dict[str, Any] = {"name": name, "versions": draw(ranges())}
        kinds = (*SCALARS, *LENGTHY, *common, *(("struct",) if deep < 2 else ()))
        kind = draw(st.sampled_from(kinds))
        array = kind != "records" and draw(st.booleans())
        if kind == "struct":
            kind = f"S{draw(st.integers(0, 99999))}"
            one["fields"] = draw(fields(flexible, common, deep + 1))
        one["type"] = f"[]{kind}" if array else kind
        can_be_null = array or kind not in SCALARS
        if can_be_null and draw(st.booleans()):
            one["nullableVersions"] = draw(st.sampled_from((one["versions"], "0+", "2+")))
        if kind in DEFAULTS and not array and draw(st.booleans()):
            one["default"] = draw(st.sampled_from(DEFAULTS[kind]))
        if flexible is not None and kind != "records" and draw(st.integers(0, 2)) == 0:
            first = draw(st.integers(flexible, LAST))
            one |= {
                "tag": tag,
                "taggedVersions": f"{first}+",
                "versions": draw(st.sampled_from((f"{first}+", "0+"))),
            }
            if "nullableVersions" in one:
                one["nullableVersions"] = "0+"
            tag += 1
        out.append(one)
    return out


@st.composite
def messages(draw: st.DrawFn, name: str) -> dict[str, Any]:
    flexible = draw(st.none() | st.integers(0, LAST))
    kind = draw(st.sampled_from(("data", "header", "request", "coordinator-value")))
    common = ["Line", "Part"] if draw(st.booleans()) else []
    out: dict[str, Any] = {
        "name": name,
        "type": kind,
        "validVersions": draw(st.sampled_from((f"0-{LAST}", f"1-{LAST}", "2"))),
        "flexibleVersions": "none" if flexible is None else f"{flexible}+",
        "fields": draw(fields(flexible, common)),
        "commonStructs": [
            {"name": one, "versions": "0+", "fields": draw(fields(flexible, common[i + 1 :]))}
            for i, one in enumerate(common)
        ],
    }
    return out | {"apiKey": 1} if kind.startswith("coordinator") else out


KEY = {
    "name": "ParcelKey", "type": "coordinator-key", "apiKey": 1, "validVersions": "0", "flexibleVersions": "none",
    "fields": [{"name": "Type", "type": "string", "versions": "0"}],
}  # fmt: skip


@pytest.mark.slow
@given(messages("Parcel"), messages("ParcelA"))
def test_definitions_become_schemas_without_findings(one: Any, other: Any) -> None:
    made = [one, {**other, "type": "data"}]
    if one["type"] == "coordinator-value":
        made.append(KEY)
    with TemporaryDirectory() as directory:
        for i, message in enumerate(made):
            (Path(directory) / f"{i}.json").write_text(json.dumps(message), "utf-8")
        found = kafka_json.find(Path(directory))
    assert {d.message.split(" ")[0] for d in found.findings} <= {"two"}, found.findings
    if found.findings:
        return  # two structs of one name
    files = {loader.MANIFEST: kafka_json.NEW_MANIFEST, **kafka_json.convert(found, "camel").files}
    for name, text in files.items():
        note(f"# {name}\n{text}")
    model, findings = loader.load(files)
    assert model is not None
    found_then = [*findings, *run(model)]
    # No default can be written of a uuid, or of a struct in a struct, where a tagged field is left out.
    assert not [d for d in found_then if "has no default for messages" not in d.message]
