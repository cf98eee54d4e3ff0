"""Tables to write, made fast from a seed: whatever a column may have, and some of what it may not."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.output_buffers import arrow_type
from kafka_codecs.arrow.records import RECORDS
from tests.fuzz.mutants import TEXTS
from tests.support.column_values import Generator, Values, lists, numbers, texts

I64 = (-(1 << 63), (1 << 63) - 1)
MOST_32 = (1 << 31) - 1
TYPES = {c.name: arrow_type(c) for c in RECORDS.columns if c.name != "position"}
NAMES = tuple(TYPES)
ON_REQUEST = tuple(c.name for c in RECORDS.columns if c.on_request and c.name != "position")
RANGES = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}
WIDTHS = {c.name: RANGES[c.type] for c in RECORDS.columns if c.type in RANGES}
EDGES = np.array(
    sorted(
        {sign * (1 << bits) + d for bits in (0, *range(6, 63, 7), 31, 32) for sign in (1, -1) for d in (-1, 0, 1)}
        | {*I64, I64[0] + 1, I64[1] - 1}
    ),
    np.int64,
)  # fmt: skip
"""Numbers around which the size of a varint changes, and the ends."""
STEPS = np.array([1, 1, 2, 63, 64, 65, 8191, 8192, 8193, 1 << 20, 1 << 27], np.int64)
FAR = np.array([1, 1, -1, 5, -64, -65, MOST_32 - 1, MOST_32, MOST_32 + 1, -MOST_32 - 1, -MOST_32 - 2, 1 << 40], np.int64)  # fmt: skip
SIZES = np.array(
    [0, 0, 1, 7, 8, 9, 15, 31, 32, 33, 50, 53, 54, 55, 56, 57, 63, 64, 65, 127, 128, 129]
)
LARGE = np.array([8100, 8176, 8178, 8180, 8182, 8190, 8191, 8192, 8193, 16383, 16384, 20_000])
COUNTS = np.array([0, 0, 0, 0, 1, 1, 2, 3, 5])
BATCH_BYTES = (1, 7, 30, 61, 100, 300, 1000, 8192, 16384, 1 << 20, 1 << 28)
GOOD = [
    b"plain",
    "\u00e4\u20ac\U0001f600".encode(),
    b"",
    b"x" * 63,
    b"x" * 64,
    "\u20ac".encode() * 11,
    b"\x7f" * 8,
]
BAD = [text for text in TEXTS if text not in GOOD and not text.isascii()]
_POOL = np.frombuffer(
    b"".join(b"%d, and the same again. " % (i * i % 977) for i in range(12_000)), np.uint8
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a table is written."""

    magic: int | None = None
    codec: str | None = None
    level: int | None = None
    batch_bytes: int = 16384
    piece_bytes: int = 1 << 20
    elements: int = 2000
    constants: Mapping[str, int | None] = field(default_factory=dict)
    where: str = "end"
    how: str = "table"
    like: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A table and how it is written: ``given`` are its columns, ``cuts`` where its chunks begin, ``null`` the row and the
    column of a null where there may be none, ``bad_text`` the rows with a header whose key is no text."""

    rows: int
    given: Mapping[str, Values]
    settings: Settings
    cuts: tuple[int, ...]
    null: tuple[int, str] | None = None
    bad_text: frozenset[int] = frozenset()
    layout_seed: int = 0


def case(seed: int, number: int) -> Case:
    """One case of a run, the same one whenever it is made."""
    r = random.Random(seed << 40 | number)
    return _Maker(r, np.random.default_rng(r.getrandbits(63))).case()


class _Maker:
    def __init__(self, r: random.Random, g: Generator) -> None:
        self.r = r
        self.g = g
        self.rows = self._count()

    def chance(self, probability: float) -> bool:
        return self.r.random() < probability

    def _count(self) -> int:
        kind = self.r.random()
        if kind < 0.04:
            return 0
        if kind < 0.15:
            return 1
        if kind < 0.45:
            return self.r.randrange(2, 10)
        if kind < 0.9:
            return self.r.randrange(10, 70)
        return self.r.randrange(100, 400) if kind < 0.99 else self.r.randrange(1000, 3000)

    def case(self) -> Case:
        r, n = self.r, self.rows
        versions = self._versions()
        oldest = max(int(versions.min()), 0) if n else 2
        wild = self.chance(0.08)  # whether older messages have what only record batches have
        columns: dict[str, Any] = {"magic": versions}
        old = oldest < 2 and not wild
        columns["offset"] = self._offsets()
        columns["codec"] = self._codecs(4 if oldest < 2 and not self.chance(0.05) else 5)
        columns["timestamp_type"] = self._types(oldest, wild)
        columns["timestamp"] = self._timestamps(columns["timestamp_type"], oldest == 0 and not wild)
        columns["base_offset"] = self._base_offsets(columns["offset"], old)
        for name in ("producer_id", "producer_epoch", "leader_epoch"):
            columns[name] = np.full(n, -1) if old else self._runs(self._edges(WIDTHS[name]))
        columns["sequence"] = np.full(n, -1) if old else self._sequences(columns)
        for name in ("is_transactional", "is_control"):
            columns[name] = np.zeros(n, np.bool_) if old else self._runs([0, 1]).astype(np.bool_)
        if not self.chance(0.1):
            self._keep_rules(columns)
        horizons = np.zeros(n, np.int64) if old else self._runs(self._edges(64))
        valid = np.zeros(n, np.bool_) if old else self._runs([0, 0, 1]) != 0
        values = {
            name: numbers(TYPES[name], np.asarray(data).astype(_dtype(name)))
            for name, data in columns.items()
        }
        values["delete_horizon"] = numbers(TYPES["delete_horizon"], horizons, valid)
        values["key"] = self._texts("key", n)
        values["value"] = self._texts("value", n)
        values["headers"], bad_text = self._headers(old)
        by_column = bool(
            (versions != versions[:1]).any() or (versions > 2).any() or (versions < 0).any()
        )
        by_column |= self.chance(0.1)
        names = self._names(by_column)
        settings = self._settings(values, names, oldest, by_column)
        given = {name: values[name] for name in NAMES if name in names}
        if "headers" not in given:
            bad_text = frozenset()
        null = None
        if n and not by_column and self.chance(0.02):
            null, given = self._with_null(given, settings)
        return Case(n, given, settings, self._cuts(), null, bad_text, r.getrandbits(62))

    def _keep_rules(self, columns: dict[str, Any]) -> None:
        """Change what the rules of batches do not allow of producers."""
        known = np.asarray(columns["producer_id"]) >= 0
        columns["is_transactional"] &= known
        columns["producer_epoch"] = np.where(known, np.maximum(columns["producer_epoch"], 0), columns["producer_epoch"])  # fmt: skip
        missing = known & ~columns["is_control"] & (np.asarray(columns["sequence"]) < 0)
        columns["sequence"] = np.where(missing, 0, columns["sequence"])

    # -------------------------------------------------------- numbers

    def _runs(self, choices: Any) -> Any:
        """Values that stay for some rows."""
        n = self.rows
        choices = self.g.permutation(np.asarray(choices, np.int64))
        if self.chance(0.6) or not n:
            return np.full(n, choices[0])
        changes = np.cumsum(self.g.random(n) < self.r.choice((0.02, 0.1, 0.5)))
        return choices[changes % len(choices)]

    def _edges(self, bits: int) -> Any:
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        return np.clip(self.g.choice(EDGES, 4), low, high)

    def _some(self, data: Any, bad: Any) -> Any:
        """Now and then one row has a value that it must not have."""
        if len(data) and self.chance(0.02):
            data = data.copy()
            data[self.r.randrange(len(data))] = self.r.choice(bad)
        return data

    def _versions(self) -> Any:
        kind = self.r.random()
        if kind < 0.55:
            return np.full(self.rows, 2, np.int64)
        if kind < 0.9:
            return np.full(self.rows, self.r.randrange(2), np.int64)
        return self._some(self._runs([0, 1, 2]), (3, -1, 127))

    def _codecs(self, count: int) -> Any:
        if self.chance(0.5):
            return np.zeros(self.rows, np.int64)
        return self._some(self._runs(range(count)), (5, 7, 8, -1, 127, -128))

    def _types(self, oldest: int, wild: bool) -> Any:
        if oldest == 0 and not wild:
            return np.full(self.rows, -1)
        data = np.zeros(self.rows, np.int64) if self.chance(0.6) else self._runs([0, 1])
        return self._some(data, (-1, 2, 3, 127, -128))

    def _offsets(self) -> Any:
        n, g, kind = self.rows, self.g, self.r.random()
        base = self.r.choice((0, 0, -3, 100, 1 << 40, I64[1] - 5, I64[0], int(g.choice(EDGES))))
        first = np.array([base], np.int64)
        if kind < 0.5:
            return first + np.arange(n)
        if kind < 0.7:
            return first + np.cumsum(g.choice(STEPS, n))
        if kind < 0.8:
            return first + np.cumsum(g.choice(FAR, n))
        if kind < 0.85:
            return first - np.arange(n)
        if kind < 0.9:
            return np.full(n, base)
        return g.choice(EDGES, n) if kind < 0.95 else g.integers(*I64, n)

    def _timestamps(self, types: Any, none: bool) -> Any:
        n, g, kind = self.rows, self.g, self.r.random()
        if none:
            return np.full(n, -1)
        if (types == 1).any() and kind < 0.9:
            return self._runs([1_700_000_000_000, -1, 5, *self._edges(64)])
        if kind < 0.5:
            return np.int64(1_700_000_000_000) + np.cumsum(g.integers(-3, 9, n))
        if kind < 0.7:
            return np.int64(1 << 40) + g.choice(EDGES, n)
        return g.choice(EDGES, n) if kind < 0.9 else g.integers(*I64, n)

    def _base_offsets(self, offsets: Any, old: bool) -> Any:
        n, kind = self.rows, self.r.random()
        if not n or kind < (0.8 if old else 0.3):
            return offsets
        starts = self._runs(range(n)) if kind < 0.35 else np.arange(n) // self.r.choice((2, 5, n))
        if kind < 0.9:
            _, first, which = np.unique(starts, return_index=True, return_inverse=True)
            return offsets[first[which]]
        if kind < 0.95:
            return offsets - self.g.choice([0, 1, 5, 64, 8192], n)
        return offsets - self.g.choice(EDGES, n)

    def _sequences(self, columns: Mapping[str, Any]) -> Any:
        n, kind = self.rows, self.r.random()
        if not n or kind < 0.3:
            return np.full(n, -1)
        first = np.int64(self.r.choice((0, 5, MOST_32 - 3, MOST_32)))
        if kind < 0.9:
            bases = columns["base_offset"] if kind < 0.6 else columns["offset"][:1]
            data = (first + (columns["offset"] - bases)) % (1 << 31)
        else:
            data = self.g.choice([-1, 0, 1, 5, MOST_32], n)
        return self._some(data, (-2, -MOST_32 - 1, 7, MOST_32))

    # -------------------------------------------------------- bytes

    def _sizes(self, n: int, budget: int) -> Any:
        kind = self.r.random()
        if kind < 0.2:
            sizes = self.g.integers(0, 9, n)
        elif kind < 0.85:
            sizes = self.g.choice(SIZES, n)
        else:
            sizes = self.g.choice(np.concatenate([SIZES, LARGE]), n)
        if kind > 0.99 and n:
            sizes[self.r.randrange(n)] = 150_000
            budget = 200_000
        sizes[np.cumsum(sizes) > budget] = 0
        return sizes

    def _data(self, size: int) -> Any:
        start = self.r.randrange(len(_POOL) - size)
        return _POOL[start : start + size]

    def _texts(self, name: str, n: int, budget: int = 40_000) -> Values:
        sizes = self._sizes(n, budget)
        valid = None
        if self.chance(0.6):
            valid = self.g.random(n) >= self.r.choice((0.1, 0.5, 1.0))
            if self.chance(0.7):  # else null has bytes of its own
                sizes = np.where(valid, sizes, 0)
        return texts(pa.binary(), sizes, self._data(int(sizes.sum())), valid)

    def _headers(self, old: bool) -> tuple[Values, frozenset[int]]:
        n = self.rows
        kind = TYPES["headers"]
        if old or self.chance(0.3):
            counts = np.zeros(n, np.int64)
        else:
            counts = self.g.choice(COUNTS, n)
            if n and self.chance(0.1):
                counts[self.r.randrange(n)] = self.r.choice((62, 63, 64, 65, 200))
        total = int(counts.sum())
        bad: frozenset[int] = frozenset()
        if total > 300 or self.chance(0.7):
            sizes = self._sizes(total, 10_000)
            key = texts(pa.string(), sizes, self._data(int(sizes.sum())))
        else:
            found = [self.r.choice(GOOD) for _ in range(total)]
            if total and self.chance(0.1):
                i = self.r.randrange(total)
                found[i] = self.r.choice(BAD)
                bad = frozenset([int(np.searchsorted(np.cumsum(counts), i, "right"))])
            sizes = np.array([len(text) for text in found], np.int64)
            key = texts(pa.string(), sizes, np.frombuffer(b"".join(found), np.uint8))
        return lists(kind, counts, (key, self._texts("headers.value", total, 10_000))), bad

    # -------------------------------------------------------- how

    def _names(self, by_column: bool) -> set[str]:
        kind = self.r.random()
        if kind < 0.3:
            names = set(NAMES)
        elif kind < 0.35:
            names = {"offset"}
        else:
            names = {"offset"} | {name for name in NAMES if self.chance(0.55)}
        return names | {"magic"} if by_column else names - {"magic"}

    def _settings(
        self, values: Mapping[str, Values], names: set[str], oldest: int, by_column: bool
    ) -> Settings:
        r = self.r
        constants: dict[str, int | None] = {}
        if self.chance(0.25):
            able = [name for name in ON_REQUEST if name not in ("magic", "codec")]
            able += ["timestamp", "timestamp_type"]
            for name in r.sample(able, r.randrange(1, 4)):
                constants[name] = self._constant(values[name])
            if self.chance(0.03):
                constants["offset"] = self._constant(values["offset"])
        if r.random() < 0.5 and names - set(constants):
            names -= set(constants)
        codec = None
        if self.chance(0.4):
            codec = r.choice(("none", "gzip", "snappy", "lz4", "zstd")[: 4 if oldest < 2 else 5])
        return Settings(
            magic=None if by_column else oldest,
            codec=codec,
            level=r.choice((1, 3, 9)) if codec in ("gzip", "zstd") and self.chance(0.2) else None,
            batch_bytes=r.choice(BATCH_BYTES) if self.chance(0.7) else r.randrange(1, 5000),
            piece_bytes=r.choice((1, 100, 3000, 1 << 20)),
            elements=r.choice((1, 2, 7, 100)) if self.chance(0.15) else 5000,
            constants=constants,
            where="end" if self.chance(0.85) else "start",
            how=r.choice(("table", "reader", "batches")),
            like=self.chance(0.1),
        )

    def _constant(self, column: Values) -> int | None:
        if not column.rows:
            return -1 if column.kind != pa.bool_() else 0
        row = self.r.randrange(column.rows)
        if column.valid is not None and not column.valid[row]:
            return None
        return int(column.data[row])

    def _with_null(
        self, given: Mapping[str, Values], settings: Settings
    ) -> tuple[tuple[int, str] | None, dict[str, Values]]:
        able = [
            c.name
            for c in RECORDS.columns
            if c.name in given and not c.nullable and c.name not in settings.constants
        ]
        able = [name for name in able if not (name == "codec" and settings.codec)]
        if not able:
            return None, dict(given)
        name, row = self.r.choice(able), self.r.randrange(self.rows)
        valid = np.ones(self.rows, np.bool_)
        valid[row] = False
        column = given[name]
        made = Values(column.kind, column.rows, valid, column.data, column.ends, column.members)
        return (row, name), {**given, name: made}

    def _cuts(self) -> tuple[int, ...]:
        """Where chunks begin after the first; a chunk may be empty."""
        if self.chance(0.4):
            return ()
        return tuple(sorted(self.r.randrange(self.rows + 1) for _ in range(self.r.randrange(6))))


def _dtype(name: str) -> Callable[..., Any]:
    if TYPES[name] == pa.bool_():
        return np.bool_
    return {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[WIDTHS[name]]
