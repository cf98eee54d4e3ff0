"""KIP-98's first draft, whose lengths may be left out, gives kernels like the formats that shipped."""

from __future__ import annotations

import importlib
import random
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from codecgen.runtime.arrow.view import View
from codecgen.runtime.errors import CodecError
from codecgen.schema import loader
from codecgen.targets import arrow
from kafka_codecs.drafts.kip_98 import KIP_98_MESSAGE_SET
from tests.codecs.strategies import kip_98_message_sets
from tests.paths import SCHEMAS
from tests.shares import draw_seeds
from tests.support.scanned_rows import unpacked

DRAFT = """\
choice: kip_98
by: magic
cases: {2: kip_98_message_set}
---
view: kip_98_messages
of: kip_98
columns:
  offset: {type: int64}
  timestamp: {type: timestamp_ms}
  key: {type: binary, nullable: true}
  value: {type: binary, nullable: true}
  is_control: {type: bool, on_request: true}
  pid: {type: int64, on_request: true}
rows:
  - of: kip_98_message_set
    each: messages
    columns:
      offset: messages.offset
      timestamp: item.timestamp
      key: item.key
      value: item.value
      is_control: item.attributes.control
      pid: pid
"""


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    root = tmp_path_factory.mktemp("draft")
    files = loader.read_files(SCHEMAS) | {"views/draft.yaml": DRAFT}
    files["codecgen.yaml"] = files["codecgen.yaml"].replace("kafka_codecs", "draft_codecs")
    model, found = loader.load(files)
    assert model is not None
    found += run(model)
    result = arrow.emit(make_plan(model))
    assert render([*found, *result.diagnostics], files) == ""
    assert not any("is read by the reference codecs" in note.help for note in result.notes)
    for path, text in result.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "draft_codecs" / "__init__.py").touch()
    sys.path.insert(0, str(root))
    try:
        yield importlib.import_module("draft_codecs.arrow.kip_98_messages").KIP_98_MESSAGES
    finally:
        sys.path.remove(str(root))


def decoded(view: View, data: bytes) -> list[dict[str, Any]] | None:
    """The rows, None when the kernels leave anything to others."""
    decoder = Decoder(view, choose(view, [column.name for column in view.columns]))
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    rows: list[dict[str, Any]] = []
    for item in decoder.decode(chunk, 0):
        if not isinstance(item, Rows):
            return None
        rows += unpacked(item.batch)
    return rows


def expected(data: bytes) -> list[dict[str, Any]]:
    parsed = KIP_98_MESSAGE_SET.parse(data)
    return [
        {
            "offset": (parsed.offset + message.offset_delta + 2**63) % 2**64 - 2**63,
            "timestamp": message.timestamp,
            "key": message.key,
            "value": message.value,
            "is_control": bool(message.attributes.control),
            "pid": parsed.pid,
        }
        for message in parsed.messages
    ]


@pytest.mark.slow
@given(message_set=kip_98_message_sets())
def test_kernels_read_what_the_reference_reads(view: View, message_set: dict[str, Any]) -> None:
    data = bytes(KIP_98_MESSAGE_SET.build(message_set))
    assert decoded(view, data) == expected(data)


def message(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    attributes = {"null_key": key is None, "null_value": value is None}
    return {"attributes": attributes, "timestamp": 5, "offset_delta": 1, "key": key, "value": value}


@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=1))
def test_every_flipped_bit_is_noticed_by_both(view: View, seed: int) -> None:
    pairs = [(b"k", b"v"), (None, b"v"), (b"key", None), (None, None), (b"", b""), (b"", None)]
    good = bytes(KIP_98_MESSAGE_SET.build({"messages": [message(*pair) for pair in pairs]}))
    assert decoded(view, good) == expected(good)
    r = random.Random(seed)
    for at in range(12, len(good)):
        for bit in range(8):
            data = bytearray(good)
            data[at] ^= 1 << bit
            if r.random() < 0.9:  # else the checksums notice it before anything else does
                checksummed(data, good)
            try:
                rows = expected(bytes(data))
            except CodecError:
                rows = None
            assert decoded(view, bytes(data)) == rows, (at, bit)


def checksummed(data: bytearray, good: bytes) -> None:
    """Make the checksums right again: those of the messages, where they were, and that of the set."""
    at = len(good) - sum(1 + size for size in sizes(good))
    for size in sizes(good):
        body = data[at + 1 : at + 1 + size - 4]
        data[at + 1 + size - 4 : at + 1 + size] = zlib.crc32(body).to_bytes(4, "big")
        at += 1 + size
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")


def sizes(good: bytes) -> list[int]:
    """Of the messages after their lengths, which have one byte each."""
    found = []
    at = KIP_98_MESSAGE_SET.offset_of("sequence") + 4
    while at < len(good):
        found.append(good[at])
        at += 1 + good[at]
    return found
