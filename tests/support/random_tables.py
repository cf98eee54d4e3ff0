"""Arrow tables of any columns that answers have, with values at the ends of their ranges and texts that are hard to show."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

LETTERS = st.characters(exclude_categories=["Cs"])
NASTY = "\x1b[31m\x9b\x07\r\n\t\u202e\u200b\ufe0f\u0301漢字👍🏽👨‍👩‍👧é\"',-[]{}\\ "
TEXT = st.text(st.one_of(LETTERS, st.sampled_from(NASTY)), max_size=90)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TIMES = st.one_of(INT64, st.integers(-63 * 10**12, 254 * 10**12), st.integers(-9, 10**13))


def integers(bits: int, signed: bool) -> tuple[Any, Any]:
    low = -(1 << bits - 1) if signed else 0
    kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    return kind, st.integers(low, low + (1 << bits) - 1)


STRUCT = pa.struct([("id", pa.int64()), ("name", pa.string()), ("when", pa.timestamp("ms", "UTC"))])
STRUCTS = st.fixed_dictionaries(
    {"id": st.none() | INT64, "name": st.none() | TEXT, "when": st.none() | TIMES}
)
EMPTY = pa.struct([])
KINDS: list[tuple[Any, Any]] = [
    (pa.string(), TEXT),
    *(integers(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.binary(), st.binary(max_size=40)),
    (pa.binary(16), st.binary(min_size=16, max_size=16)),
    (pa.timestamp("ms", "UTC"), TIMES),
    (pa.list_(pa.int32()), st.lists(integers(32, True)[1], max_size=12)),
    (pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=4)),
    (STRUCT, STRUCTS),
    (pa.list_(STRUCT), st.lists(STRUCTS, max_size=3)),
    (EMPTY, st.just({})),
    (pa.list_(EMPTY), st.lists(st.none() | st.just({}), max_size=3)),
    (pa.dictionary(pa.int32(), pa.string()), TEXT),
]
WITH_FIELDS = [(kind, values) for kind, values in KINDS if kind not in (EMPTY, pa.list_(EMPTY))]
"""What Parquet can hold: it has no structs without fields."""
NUMBERS = [kind for kind, _ in KINDS if pa.types.is_integer(kind) or pa.types.is_floating(kind)]


@st.composite
def tables(draw: Any, kinds: list[tuple[Any, Any]] = KINDS) -> pa.Table:
    """A table of up to seven columns, cut into batches anywhere."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=7))
    names = draw(
        st.lists(
            st.text("abc_", min_size=1, max_size=20),
            min_size=len(chosen),
            max_size=len(chosen),
            unique=True,
        )
    )
    rows = draw(st.integers(0, 4))
    columns = []
    for kind, values in chosen:
        cells = st.lists(st.none() | values, min_size=rows, max_size=rows)
        columns.append(pa.array(draw(cells), type=kind))
    schema = pa.schema(list(zip(names, (kind for kind, _ in chosen), strict=True)))
    table = pa.table(columns, schema)
    cut = draw(st.integers(0, rows))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


def iso(milliseconds: int) -> str:
    """By days of the Gregorian calendar, counted here: no calendar of Python's."""
    days, rest = divmod(milliseconds, 86_400_000)
    z = days + 719_468
    era, doe = divmod(z, 146_097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    if not 1 <= year <= 9999:
        return str(milliseconds)
    day = doy - (153 * mp + 2) // 5 + 1
    seconds, ms = divmod(rest, 1000)
    hour, second = divmod(seconds, 3600)
    clock = f"{hour:02d}:{second // 60:02d}:{second % 60:02d}.{ms:03d}Z"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}"
