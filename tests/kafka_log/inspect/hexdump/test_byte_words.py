"""What a number means is said by the schemas: which one is none, and which ones are times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import kafka_codecs
from codecgen.runtime.construct import Integer, Layout
from kafka_log.inspect.hexdump.byte_fields import format_field
from kafka_log.text.values import format_time
from tests.paths import SCHEMAS

FILES = (
    "records/record_batch.yaml",
    "records/record.yaml",
    "records/message.yaml",
    "files/producer_snapshot.yaml",
    "files/time_index.yaml",
    "files/transaction_index.yaml",
)


def layouts() -> dict[str, Layout]:
    """The newest version of each layout."""
    every = (getattr(kafka_codecs, name) for name in kafka_codecs.__all__)
    return {one.layout_name: one for one in every if isinstance(one, Layout)}


LAYOUTS = layouts()


def said() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The plain numbers of the layouts that are shown byte by byte, as the YAML has them."""
    for file in FILES:
        for page in yaml.safe_load_all((SCHEMAS / file).read_text()):
            for name, field in page["fields"].items():
                layout = LAYOUTS[page["layout"]]
                if isinstance(layout.by_name[name].codec, Integer) and "checksum" not in field:
                    yield page["layout"], name, field


NUMBERS = list(said())
TIME = 1_795_154_400_000


def test_there_are_enough_of_them() -> None:
    assert len(NUMBERS) > 22
    assert sum("none" in field for *_, field in NUMBERS) > 10


@pytest.mark.parametrize(("layout", "name", "field"), NUMBERS)
def test_words_are_those_of_the_schema(layout: str, name: str, field: dict[str, Any]) -> None:
    made = LAYOUTS[layout].by_name[name]
    is_time = field.get("unit") == "ms" and field["type"] == "i64"
    if "none" in field:
        assert format_field(made, field["none"]) == f"{field['none']} (none)"
    elif not is_time:
        assert format_field(made, -1) == "-1"
    expected = f"{TIME}, {format_time(TIME)}" if is_time else str(TIME)
    assert format_field(made, TIME) == expected
