"""An encoder whose memory lies between guard pages, as do the tables that it writes, and what must hold of what it writes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow import encoder as encoding
from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.arrow.input_columns import Source
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.arrow import records_encoders
from kafka_codecs.arrow.records import RECORDS
from kafka_log.write import encoding as log_encoding
from kafka_log.write.encoding import encode
from tests.fuzz.checked import Broken, Ranges, checked, complaining
from tests.fuzz.expected import Expected, Refused, built, expected
from tests.fuzz.guards import Guarded, Outputs
from tests.fuzz.made_tables import NAMES, Case
from tests.support.column_values import Layout, array, plain
from tests.support.record_tables import decoded

SCHEMA = {c.name: pa.field(c.name, arrow_type(c), c.nullable) for c in RECORDS.columns}
AROUND = 81 + 64
"""Bytes that are asked for beside the rows of each entry, at most: its head, and what stores may go beyond the end."""
EACH = 64
"""Bytes of a row beside its key, value and headers, at most, and of a header beside its own."""

LIKE = {
    "key": (pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())),
    "value": (pa.large_binary(), pa.binary_view()),
    "timestamp": (pa.int64(), pa.timestamp("ms"), pa.timestamp("ms", "Europe/Berlin")),
    "delete_horizon": (pa.int64(), pa.timestamp("ms")),
    "offset": (pa.int64(),),
    "headers": (
        pa.large_list(pa.struct([("value", pa.large_binary()), ("key", pa.large_string())])),
        pa.list_(pa.struct([("key", pa.string_view()), ("value", pa.binary_view())])),
        pa.map_(pa.string(), pa.binary()),
    ),
}
"""Other types of columns that hold the same. Those of numbers may be wider."""


class GuardedEncoder(Encoder):
    """An encoder that keeps whatever arrays it has between guard pages."""

    probe: EncoderProbe

    def __init__(self, *args: Any, **options: Any) -> None:
        self.memories: dict[str, Guarded] = {}
        probe = self.probe
        settings = probe.case.settings
        super().__init__(
            *args,
            **options,
            piece_bytes=settings.piece_bytes,
            limits=Limits(elements=settings.elements),
            kernels=probe.kernels,
        )
        source = self.columns.source

        def noted(batch: pa.RecordBatch) -> Source:
            found = source(batch)
            probe.source = found
            return found

        self.columns.source = noted
        probe.encoder = self

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            value = self.probe.kept(name, value)
        super().__setattr__(name, value)


class EncoderProbe:
    """Writes tables, in one way. One for a process at a time: it takes the place of the encoder."""

    def __init__(self, where: str, kernels: ModuleType, ranges: Ranges | None) -> None:
        self.where = where
        self.ranges = ranges
        self.kernels = self._told(complaining(kernels, ranges))
        self.inputs = Outputs(where, lambda _: None, lambda *_: None)
        self.outputs = Outputs(where, self._asked, self._made)
        self.memories: dict[str, Guarded] = {}
        self.arrays: dict[str, Any] = {}
        self.made: list[tuple[int, int, bool]] = []
        self.encoder: GuardedEncoder | None = None
        self.source: Source | None = None
        self.case: Case
        self.most = 0

    def kept(self, name: str, value: Any) -> Any:
        """An array of an encoder, in guarded memory."""
        if name not in self.memories:
            self.memories[name] = Guarded(self.where)
        placed = self.memories[name].array(value.nbytes).view(value.dtype).reshape(value.shape)
        placed[...] = value
        self.arrays[name] = placed
        return placed

    def run(self, case: Case, batches: list[pa.RecordBatch] | None = None) -> Written:
        """Write a case, or other batches in its place. Raises Broken."""
        self.case = case
        settings = case.settings
        layout = Layout(self.inputs.allocate, np.random.default_rng(case.layout_seed))
        if batches is None:
            self.inputs.reset()
            batches = list(tables(case, layout))
        held = sum(batch.get_total_buffer_size() for batch in batches)
        # rows that are kept for the next chunk's sake are written once, but may be compressed apart
        self.most = 2 * held + (AROUND + EACH) * (case.rows + 4) + (1 << 16)
        data: Any = batches
        if settings.how == "reader" and batches:
            data = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        elif settings.how == "table" or not batches or len(batches) > 1:
            data = pa.Table.from_batches(batches)
        else:
            data = batches[0]
        written = Written()
        self.outputs.reset()
        self.made = []
        GuardedEncoder.probe = self
        before = encoding.Encoder, encoding.pa
        check = log_encoding._check_control_records
        log_encoding._check_control_records = lambda rows, *_: iter(rows)  # keys are random here
        encoding.Encoder = GuardedEncoder
        encoding.pa = _Arrow(self.outputs)
        try:
            for piece in encode(
                data,
                magic=settings.magic,
                codec=settings.codec,
                level=settings.level,
                batch_bytes=settings.batch_bytes,
                **settings.constants,
            ):
                written.pieces.append(bytes(piece))
                self.outputs.reset()
                self.made = []
        except (RowRefused, ValueError) as error:
            written.error = error
        finally:
            encoding.Encoder, encoding.pa = before
            log_encoding._check_control_records = check
        return written

    def _asked(self, size: int) -> None:
        if self.outputs.total > self.most:
            raise Broken(f"a buffer of {size} bytes, of {self.most} at most")

    def _made(self, address: int, size: int) -> None:
        self.made.append((address, size, True))

    def _told(self, kernels: Any) -> Any:
        """The kernels, which are told before each run what they may touch."""
        ranges = self.ranges
        if ranges is None:
            return kernels

        def wrapped(kernel: Callable[..., Any], writes: bool) -> Callable[..., Any]:
            def run(*args: int) -> Any:
                found = self._places()
                if writes:
                    found += self._runs(*args[2:4])
                ranges.set(list(dict.fromkeys(found)))
                return kernel(*args)

            return run

        passes = {
            kind: (wrapped(cut, False), wrapped(fill, False), wrapped(write, True))
            for kind, (cut, fill, write) in kernels.KERNELS.items()
        }
        return SimpleNamespace(KERNELS=passes, JIT=kernels.JIT)

    def _places(self) -> list[tuple[int, int, bool]]:
        """All memory of an encoder: what it allocated, its own arrays, the columns."""
        assert self.source is not None
        found = self.made + [(a.ctypes.data, a.nbytes, True) for a in self.arrays.values()]
        for item in self.source.kept:
            if isinstance(item, np.ndarray):
                found.append((item.ctypes.data, item.nbytes, False))
            else:
                found += [(b.address, b.size, False) for b in item.buffers() if b is not None]
        return found

    def _runs(self, first: int, last: int) -> list[tuple[int, int, bool]]:
        """What was compressed for entries of the table."""
        assert self.encoder is not None
        rows = self.encoder.table[first:last, [encoding._SECTION, encoding._SECTION_SIZE]].tolist()
        return [(start, size, False) for start, size in rows if start]


class _Arrow:
    """pyarrow, but for where buffers come from."""

    def __init__(self, outputs: Outputs) -> None:
        self.allocate_buffer = outputs.allocate

    def __getattr__(self, name: str) -> Any:
        return getattr(pa, name)


class Written:
    """What became of a table."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.error: RowRefused | ValueError | None = None

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


# ------------------------------------------------------------ tables


def tables(case: Case, layout: Layout) -> Iterator[pa.RecordBatch]:
    """The chunks of a case as they are written."""
    r = random.Random(case.layout_seed)
    kinds = {name: _kind(name, r) for name in case.given} if case.settings.like else {}
    if case.null is not None:
        kinds.pop(case.null[1], None)  # not all types have it
    names = list(case.given)
    if case.settings.like:
        r.shuffle(names)
    edges = (0, *case.cuts, case.rows)
    for first, last in pairwise(edges):
        arrays = []
        for name in names:
            part = case.given[name].part(first, last)
            if name in kinds:
                arrays.append(_like(array(part, plain()), kinds[name]))
            else:
                arrays.append(array(part, layout))
        fields = [SCHEMA[n] if n not in kinds else pa.field(n, a.type) for n, a in zip(names, arrays, strict=True)]  # fmt: skip
        fields = [field.with_nullable(True) for field in fields]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _kind(name: str, r: random.Random) -> pa.DataType:
    kind = SCHEMA[name].type
    if name in LIKE:
        return r.choice((kind, *LIKE[name]))
    return r.choice((kind, pa.int64())) if pa.types.is_integer(kind) else kind


def _like(found: Any, kind: pa.DataType) -> Any:
    if kind == found.type:
        return found
    if pa.types.is_list(found.type):
        structs = found.values
        parts = {n: structs.field(n) for n in ("key", "value")}
        if pa.types.is_map(kind):
            return pa.MapArray.from_arrays(found.offsets, parts["key"], parts["value"])
        inner = kind.value_type
        made = [parts[f.name].cast(f.type) for f in inner]
        struct = pa.StructArray.from_arrays(made, fields=list(inner))
        large = pa.types.is_large_list(kind)
        offsets = found.offsets.cast(pa.int64()) if large else found.offsets
        maker = pa.LargeListArray if large else pa.ListArray
        return maker.from_arrays(offsets, struct)
    if pa.types.is_timestamp(found.type) and pa.types.is_timestamp(kind):
        return found.cast(pa.int64()).cast(kind)
    return found.dictionary_encode() if pa.types.is_dictionary(kind) else found.cast(kind)


# ------------------------------------------------------------ laws


def check(case: Case, written: Written) -> Expected:
    """Hold what was written against the table. Raises Broken."""
    found = expected(case)
    error = written.error
    after = case.rows
    refused = found.first_refused()
    if error is None:
        if case.null is not None:
            raise Broken(f"null in row and column {case.null} is written")
        if refused is not None:
            raise Broken(f"row {refused} is written: {_blamed(found, refused)} has no place")
    elif not isinstance(error, RowRefused):
        raise Broken(f"a table is refused: {error!r}")
    else:
        after = error.row
        _check_refusal(case, found, error, refused)
    data = written.data
    if not data:
        if error is None and case.rows:
            raise Broken("nothing is written")
        return found
    names = [n for n in NAMES if n != "base_offset" or n in found.said]
    try:
        again = decoded(data, names)
    except AssertionError as rejected:
        raise Broken(f"what is written is odd: {rejected}") from rejected
    if again.num_rows != after and (error is None or again.num_rows > after):
        raise Broken(f"{again.num_rows} rows are read, of {after}")
    rows = found.batch()
    for name in names:
        column = rows.column(name).slice(0, again.num_rows)
        if not again.column(name).equals(pa.chunked_array([column])):
            raise Broken(f"{name} is {again.column(name)}, it was {column}")
    return found


def _blamed(found: Expected, row: int) -> set[str]:
    masks = (*found.refused.items(), *found.perhaps.items())
    return {name for name, mask in masks if mask[row]}


def _check_refusal(case: Case, found: Expected, error: RowRefused, refused: int | None) -> None:
    row, column = error.row, error.column
    if not 0 <= row < case.rows:
        raise Broken(f"{error} names no row of {case.rows}")
    if case.null is not None:
        start = max((cut for cut in (0, *case.cuts) if cut <= case.null[0]), default=0)
        if (row, column) == case.null and (refused is None or refused >= start):
            return
        if row >= start:
            raise Broken(f"{error}, but null is in row and column {case.null}")
    if column not in _blamed(found, row):
        raise Broken(f"{error}: it is refused for nothing, or {_blamed(found, row)}")
    if refused is not None and refused < row:
        raise Broken(f"{error}, but row {refused} has no place: {_blamed(found, refused)}")


def compare(case: Case, written: Written, found: Expected) -> None:
    """Hold the bytes against those of the reference codecs. Raises Broken."""
    if written.error is not None or case.settings.level is not None:
        return
    try:
        wanted = built(case, found)
    except (CodecError, Refused) as error:
        raise Broken(f"the reference codecs: {error!r}") from error
    data = written.data
    if data != wanted:
        at = next((i for i, (a, b) in enumerate(zip(data, wanted, strict=False)) if a != b), -1)
        raise Broken(
            f"from byte {at} on: {data[at : at + 80].hex()} of {len(data)}\n"
            f"the reference codecs: {wanted[at : at + 80].hex()} of {len(wanted)}"
        )


class EncoderProbes:
    """A probe for each way; those with checks are compiled when they are needed. Tables of entries are small, so that
    their ends are met."""

    def __init__(self, folder: Path, edit: Callable[[str], str] | None = None) -> None:
        self.folder = folder
        self.edit = edit
        self.probes: dict[tuple[str, bool], EncoderProbe] = {}
        self.modules: dict[bool, tuple[ModuleType, Ranges | None]] = {}
        encoding.ENTRIES = 8

    def of(self, where: str, checks: bool) -> EncoderProbe:
        key = (where, checks)
        if key not in self.probes:
            self.probes[key] = EncoderProbe(where, *self._kernels(checks))
        return self.probes[key]

    def _kernels(self, checks: bool) -> tuple[ModuleType, Ranges | None]:
        if checks not in self.modules:
            ranges = Ranges() if checks else None
            module: ModuleType = records_encoders
            if ranges is not None:
                module = checked(records_encoders, ranges, self.folder, self.edit)
            self.modules[checks] = module, ranges
        return self.modules[checks]
