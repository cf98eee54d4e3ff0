"""The schemas as of three releases, beside the lists of fields that Kafka's documentation had then.

The lists differ from the schemas only where a schema says so (`misprint`), and every such remark is needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codecgen.schema.loader import load, read_files
from codecgen.schema.model import Model
from codecgen.schema.types import (
    BitsType,
    BytesType,
    ScalarType,
)
from tests.paths import SCHEMAS
from tests.support.message_format_pages import (
    RELEASES,
    compare,
    misprints,
    page,
    plan_of,
)


def model() -> Model:
    found, diagnostics = load(read_files(SCHEMAS))
    assert found is not None and not diagnostics
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "release",
    [
        pytest.param(r, marks=[pytest.mark.slow] * (0 < i < len(RELEASES) - 1))
        for i, r in enumerate(RELEASES)
    ],
)
def test_the_page_of_a_release(release: str) -> None:
    found = compare(plan_of(model(), release), page(release))
    wrong = [f"{d.where}: the page has {d.shown}" for d in found if not d.excused(release)]
    assert not wrong


def test_every_misprint_is_in_some_page() -> None:
    schemas = model()
    seen = {
        d.where for r in RELEASES for d in compare(plan_of(schemas, r), page(r)) if d.excused(r)
    }
    assert set(misprints(schemas)) == seen


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.11.0", {"record_batch.crc", "record_batch.record_count", "record.timestamp_delta"}),
        (
            "3.1.0",
            {
                "record_batch.crc",
                "record_batch.record_count",
                "control_record_key.type",
                "message.crc",
                "message.attributes.compression",
            },
        ),
    ],
)
def test_what_a_page_has_wrong(release: str, expected: set[str]) -> None:
    found = compare(plan_of(model(), release), page(release))
    assert {d.where for d in found} == expected


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("layout", "changed", "release"),
    [
        ("record_batch", {"producer_epoch": ScalarType("i32")}, "3.1.0"),
        ("record", {"offset_delta": ScalarType("varlong")}, "0.11.0"),
        ("header", {"key": BytesType("i32", True)}, "2.1.0"),
        ("record_batch", {"base_sequence": None}, "2.1.0"),
    ],
)
def test_a_schema_that_is_wrong_is_found(
    layout: str, changed: dict[str, Any], release: str
) -> None:
    schemas = model()
    one = schemas.layouts[layout]
    kept = [
        replace(f, type=changed.get(f.name, f.type))
        for f in one.fields
        if changed.get(f.name, f.type) is not None
    ]
    bad = replace(
        schemas,
        layouts={**schemas.layouts, layout: replace(one, fields=tuple(kept), derived=(), rules=())},
    )
    found = compare(plan_of(bad, release), page(release))
    assert any(d.where.startswith(layout) and not d.excused(release) for d in found)


def test_a_bit_that_moved_is_found() -> None:
    schemas = model()
    batch = schemas.layouts["record_batch"]
    moved = []
    for f in batch.fields:
        if isinstance(f.type, BitsType):
            swap = {"is_transactional": 5, "is_control": 4}
            members = tuple(
                replace(m, low=swap[m.name], high=swap[m.name]) if m.name in swap else m
                for m in f.type.members
            )
            f = replace(f, type=replace(f.type, members=members))
        moved.append(f)
    bad = replace(
        schemas, layouts={**schemas.layouts, "record_batch": replace(batch, fields=tuple(moved))}
    )
    assert any(not d.excused("3.1.0") for d in compare(plan_of(bad, "3.1.0"), page("3.1.0")))
