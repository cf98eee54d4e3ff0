"""Building what was parsed gives the bytes that the reference's own builder wrote."""

from __future__ import annotations

import pytest

from codecgen.runtime.construct import Layout
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY, Compression
from tests.paths import VECTORS
from tests.support.reference_entries import CRAFTED, FILES, entries


@pytest.mark.parametrize("file", FILES)
def test_build_of_parse_is_the_same(file: str) -> None:
    for entry in entries((VECTORS / file).read_bytes()):
        layout: Layout = LOG_ENTRY.case(Source(entry, Session()))
        parsed = layout.parse(entry)
        built = layout.build(parsed)
        if parsed.attributes.compression == Compression.NONE:
            assert built == entry
            continue
        again = layout.parse(built)
        computed = ("crc", "batch_length", "message_size")
        assert {k: v for k, v in again.items() if k not in computed} == {
            k: v for k, v in parsed.items() if k not in computed
        }


def test_the_crafted_files_are_only_those_that_need_it() -> None:
    """Each listed file has a batch that does not come back byte for byte, or is refused by a strict parser."""
    for file in CRAFTED:
        changed = False
        for entry in entries((VECTORS / file).read_bytes()):
            try:
                changed |= LOG_ENTRY.build(LOG_ENTRY.parse(entry)) != entry
            except Exception:
                changed = True
        assert changed, file
