"""What the page of bytes says about fields."""

from __future__ import annotations

import pytest

from kafka_codecs.columns.records import RECORDS
from kafka_log.inspect.browse.field_docs import document_field

COLUMNS = {column.name: column for column in RECORDS.columns}
HEADERS = {member.name: member for member in COLUMNS["headers"].members}


@pytest.mark.parametrize(
    ("path", "doc"),
    [
        ("records[3].key", COLUMNS["key"].doc),
        ("records[0].value", COLUMNS["value"].doc),
        ("records[3].headers[1].key", HEADERS["key"].doc),
        ("records[0].headers[0].value", HEADERS["value"].doc),
        ("records[0].length", ""),
    ],
)
def test_fields_of_records_are_told_from_those_of_their_headers(path: str, doc: str) -> None:
    assert document_field(path) == doc
