"""`refuse` that compares a field with the last element of an array, or with a field before it: every engine refuses the same bytes."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from codecgen.check import run
from codecgen.runtime.errors import BuildError, ValueRefused
from codecgen.runtime.fast_path import without_fast_paths
from codecgen.schema import loader
from tests.codecgen.generated import package_of
from tests.shares import draw_seeds
from tests.support.rejected_entries import LOADERS, decoders_of, rejected

SCHEMA = """\
enums:
  codec: {doc: How it is compressed., values: {none: 0, gzip: 1}}
---
choice: entry
by: kind
cases: {0: counted, 1: open, 2: pressed, 3: pair, 4: full, 5: apart}
---
layout: counted
fields:
  kind: {type: u8, const: 0}
  size: {type: u8, measures: rest}
  last_delta: i8
  count: {type: u8, counts: records}
  records: {array: record, refuse: last_delta < last(records).delta}
---
layout: open
fields:
  kind: {type: u8, const: 1}
  size: {type: u8, measures: rest}
  first_delta: i8
  last_delta: i8
  records: {array: record, until: end, refuse: first_delta != first(records).delta or last_delta < last(records).delta}
---
layout: pressed
fields:
  kind: {type: u8, const: 2}
  size: {type: u8, measures: rest}
  codec: {type: u8, enum: codec}
  last_delta: i8
  count: {type: u8, counts: records}
  records:
    array: record
    refuse: last_delta < last(records).delta
    compressed: {by: codec, limit: 1000}
---
layout: pair
fields:
  kind: {type: u8, const: 3}
  size: {type: u8, measures: rest}
  low: i8
  name: {string: u8}
  high: {type: i8, refuse: low > high}
---
layout: full
fields:
  kind: {type: u8, const: 4}
  size: {type: u8, measures: rest}
  last_delta: i8
  count: {type: u8, counts: records}
  records: {array: record, refuse: last(records).delta == null or last(records).delta + 1 > last_delta}
---
layout: apart
fields:
  kind: {type: u8, const: 5}
  size: {type: u8, measures: rest}
  first_delta: i8
  last_delta: i8
  count: {type: u8, counts: records}
  records: {array: record, refuse: first_delta > last_delta}
---
layout: record
fields: {delta: varint}
---
view: deltas
of: entry
columns: {delta: {type: int64}}
rows:
  - {of: counted, each: records, columns: {delta: item.delta}}
  - {of: open, each: records, columns: {delta: item.delta}}
  - {of: pressed, each: records, columns: {delta: item.delta}}
  - {of: full, each: records, columns: {delta: item.delta}}
  - {of: apart, each: records, columns: {delta: item.delta}}
  - {of: pair, columns: {delta: low}}
"""


def drawn(r: random.Random) -> tuple[dict[str, Any], bool]:
    """Return the values of an entry, and whether it is refused."""
    kind = r.randrange(6)
    if kind == 3:
        low, high = r.randrange(-2, 3), r.randrange(-2, 3)
        return {"kind": 3, "low": low, "name": "a" * r.randrange(3), "high": high}, low > high
    deltas = [r.randrange(-3, 4) for _ in range(r.choice((0, 1, 1, 2, 5)))]
    last, first = r.randrange(-3, 4), r.choice((*deltas[:1], 0))
    values = {"kind": kind, "last_delta": last, "records": [{"delta": d} for d in deltas]}
    values |= {"first_delta": first} if kind in (1, 5) else {}
    values |= {"codec": r.choice(("none", "gzip"))} if kind == 2 else {}
    refused = deltas != [] and last < deltas[-1]
    if kind == 1:  # without elements the first one is null, which is another value than a number
        refused |= first != next(iter(deltas), None)
    if kind == 4:
        refused = deltas == [] or deltas[-1] + 1 > last
    if kind == 5:
        refused = first > last
    return values, refused


@pytest.mark.share(ci=2)
@pytest.mark.slow
@LOADERS
@pytest.mark.parametrize("seed", draw_seeds(1, first=11))
def test_all_engines_refuse_the_same_entries(tmp_path: Path, load: Any, seed: int) -> None:
    name = f"ends_{load.__name__}"
    package = package_of(SCHEMA, tmp_path, name, "construct,arrow")
    (tmp_path / "lax").mkdir()
    text = re.sub(r", refuse: [^,}\n]+|^ +refuse: .*\n", "", SCHEMA, flags=re.MULTILINE)
    lax = package_of(text, tmp_path / "lax", f"lax_{name}")
    decoders = decoders_of(package, "deltas", tmp_path / "out", load)
    r = random.Random(seed)
    seen: set[tuple[int, bool]] = set()
    for _ in range(200):
        drawn_entries = [drawn(r) for _ in range(r.randrange(1, 4))]
        parts = [lax.ENTRY.build(values) for values, _ in drawn_entries]
        refused = [i for i, (_, bad) in enumerate(drawn_entries) if bad]
        for decoder in decoders:
            assert rejected(decoder, parts) == refused, drawn_entries
        for (values, bad), part in zip(drawn_entries, parts, strict=True):
            seen.add((values["kind"], bad))
            check_codecs(package.ENTRY, values, part, bad)
    assert len(seen) == 12


def check_codecs(codec: Any, values: dict[str, Any], data: bytes, is_refused: bool) -> None:
    """Fast and field-by-field codecs refuse an entry, strict and lenient, or read and write it."""
    if not is_refused:
        assert codec.build(values) == data
        for strict in (True, False):
            parsed = codec.parse(data, strict=strict)
            with without_fast_paths():
                assert repr(codec.parse(data, strict=strict)) == repr(parsed)
        return
    about = "high" if values["kind"] == 3 else "records"
    for strict in (True, False):
        with pytest.raises(ValueRefused) as refused:
            codec.parse(data, strict=strict)
        assert refused.value.where.path == about
        with without_fast_paths(), pytest.raises(ValueRefused) as again:
            codec.parse(data, strict=strict)
        assert str(again.value) == str(refused.value)
    with pytest.raises(BuildError) as unbuilt:
        codec.build(values)
    assert unbuilt.value.where.path == about


EARLY = """\
layout: batch
fields:
  low: {type: i8, refuse: low > high}
  high: i8
  last_delta: {type: i8, valid: last_delta >= last(records).delta}
  records: {array: record, count: u8}
---
layout: record
fields: {delta: varint}
"""


def test_a_field_too_early_is_told_where_the_condition_goes() -> None:
    manifest = "language: 1\npackage: early_codecs\ntitle: Early\n"
    model, found = loader.load({loader.MANIFEST: manifest, "case.yaml": EARLY})
    assert model is not None
    found += run(model)
    assert [(d.code, d.span.line) for d in found] == [("C016", 3), ("C016", 5)]
    assert '`refuse` of "high" (case.yaml:4)' in found[0].help
    assert '`valid` of "records" (case.yaml:6)' in found[1].help
