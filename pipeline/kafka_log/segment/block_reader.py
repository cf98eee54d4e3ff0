"""Readers of files of batches as blocks: consecutive batches that the Arrow kernels decode, with their headers.

Entries that the kernels reject come as batches of the reference codecs, in file order between the blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Unpack, cast

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import (
    Chunk,
    Decoder,
    Rejected,
    Rows,
    choose,
    load_kernels,
    load_numpy_reader,
)
from codecgen.runtime.located_bytes import Limits
from kafka_log.segment.blocks import COLUMNS, COUNTED, Block
from kafka_log.segment.cursor import CHUNK_BYTES, Cursor, WholeBytes
from kafka_log.segment.kernels import Engine, check_engine, load_decoder, load_view
from kafka_log.segment.model import Batch, End, Policy, Tail
from kafka_log.segment.paths import make_path
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import FileOptions
from kafka_log.segment.skipping import part_of


class BlockDecoder(Decoder):
    """Decoder of chunks of a file by the Arrow kernels, which yields :class:`Block` objects: the
    records of consecutive batches with their batch headers.
    """

    def __init__(self, columns: Sequence[str], *, sizes: bool = False, **options: Any) -> None:
        """Choose columns of the view records; ``options`` are those of :class:`Decoder`, ``sizes`` adds the sizes of compressed sections."""
        records, batches = load_view("records"), load_view("batches")
        super().__init__(records, choose(records, columns), sizes=sizes, **options)
        load = load_kernels if self.numpy is None else load_numpy_reader
        self.batch_headers = Decoder(
            batches, batches.columns, limits=self.limits, kernels=load(batches)
        )

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield, in file order, a Block for each run of batches that the kernels decode and whose
        checksums are valid, and a Rejected for each entry that they do not accept, such as a
        damaged one. After a Rejected whose ``end`` is None, the caller must go on by other means.
        An incomplete last entry yields nothing. ``position`` is where the chunk begins in the file.
        """
        for item in super().decode(chunk, position):
            if isinstance(item, Rows):
                yield from self._with_headers(item, chunk, position)
            else:
                yield item

    def _with_headers(self, rows: Rows, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield ``rows`` as one Block with the headers of their batches. Yield instead a Rejected
        whose ``end`` is None if these headers do not decode as one run of as many entries.
        """
        part = part_of(chunk, rows.start - position, rows.end - position)
        found = [
            item for item in self.batch_headers.decode(part, rows.start) if isinstance(item, Rows)
        ]
        if len(found) != 1 or found[0].entries != rows.entries:
            yield Rejected(rows.start, None)
            return
        where = rows.start, rows.last, rows.end, rows.entries
        yield Block(rows.batch, *where, rows.sections, batch_headers=found[0].batch)


class HeaderDecoder(BlockDecoder):
    """Decoder of batch headers that verifies checksums and does not decompress record batches.

    Legacy messages are decoded in full: telling compressed ones apart would cost more.
    """

    def __init__(self, columns: Sequence[str], **options: Any) -> None:
        """Choose columns of the view records, without decompression. ``options`` are those of :class:`BlockDecoder`."""
        super().__init__(columns, decompress=False, **options)

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield, in file order, a Block with the headers of each run of consecutive batches in
        ``chunk``, whatever their codec and format, and a Rejected for each entry that the kernels
        do not accept. ``position`` is where the chunk begins in the file. After a Rejected whose
        ``end`` is None, the caller must go on by other means. An incomplete last entry yields
        nothing. Only blocks of legacy messages have records.
        """
        held: list[Rows] = []
        for item in Decoder.decode(self, chunk, position):
            if isinstance(item, Rejected):
                yield from self._join_rows(held, chunk, position)
                yield item
                held = []
                continue
            if held and held[-1].end != item.start:
                yield from self._join_rows(held, chunk, position)
                held = []
            held.append(item)
        yield from self._join_rows(held, chunk, position)

    def _join_rows(
        self, held: Sequence[Rows], chunk: Chunk, position: int
    ) -> Iterator[Rows | Rejected]:
        """Yield one Block for the consecutive rows ``held``, with the headers of their batches and
        the records of legacy messages only. Yield a Rejected whose ``end`` is None if the headers
        do not match the rows; nothing if there are no rows.

        Batches with other codecs and formats are joined too. Legacy messages come with their records.
        """
        if not held:
            return
        start, end, entries = held[0].start, held[-1].end, sum(rows.entries for rows in held)
        found = list(
            self.batch_headers.decode(part_of(chunk, start - position, end - position), start)
        )
        heads = [item for item in found if isinstance(item, Rows)]
        if len(heads) < len(found) or sum(rows.entries for rows in heads) != entries:
            yield Rejected(start, None)
            return
        headers = _concatenate(heads)
        starts = [rows.start for rows in held]
        at = np.searchsorted(numbers(headers, "position"), starts)
        unsaid = headers.column("record_count").is_null().take(pa.array(at)).to_pylist()
        # Those of a run have one format.
        records = [rows for rows, is_read in zip(held, unsaid, strict=True) if is_read]
        batch = _concatenate(records) if records else held[0].batch.slice(0, 0)
        yield Block(batch, start, held[-1].last, end, entries, batch_headers=headers)


def _concatenate(parts: Sequence[Rows]) -> pa.RecordBatch:
    """Return all rows of ``parts``, at least one, as one record batch; an empty one if no part has
    rows.
    """
    some = [rows.batch for rows in parts if rows.batch.num_rows]
    if len(some) < 2:
        return some[0] if some else parts[0].batch
    return pa.Table.from_batches(some).combine_chunks().to_batches()[0]


class BlockScanner:
    """One pass over a file of batches. :meth:`items` yields blocks, which the kernels decode, and
    batches that the reference codecs read in their place.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        policy: Policy | str = Policy.KAFKA,
        *,
        records: bool = True,
        check_rules: bool = False,
        sizes: bool = False,
        engine: Engine = "auto",
        chunk_bytes: int = CHUNK_BYTES,
        **options: Unpack[FileOptions],
    ) -> None:
        """Prepare a pass over ``path``; nothing is opened yet. ``sizes`` adds the sizes of compressed sections to the blocks."""
        self.reader = SegmentReader(
            path, policy=policy, records=records, check_rules=check_rules, **options
        )
        self.columns = columns
        self.sizes = sizes and records
        self.chunk_bytes = chunk_bytes
        self.kernels = load_decoder("records", engine, self.reader.options.limits)
        self.cursor = Cursor(self.reader)

    @property
    def end(self) -> End | None:
        """How the file ended; None before that."""
        return self.reader.end

    @property
    def bytes_read(self) -> int:
        """Number of bytes of the file that were read, counted again where they were read again."""
        return self.cursor.bytes_read

    def items(self) -> Generator[Block | Batch, None, None]:
        """Yield, in file order, blocks of batches that the kernels decode, and a Batch for each one
        that the reference codecs read, such as one with a wrong checksum. Iterating raises
        CodecError for the first problem, or an unreadable file, under ``strict``; under other
        policies problems are in the batches and in ``end``. It raises FileNotFoundError for a
        missing file if no ``size`` was listed. Raise ValueError at once for an unknown column, if
        the kernels are used.
        """
        items = self.cursor.items(
            self.decoder(), lambda file, _: WholeBytes(file, self.chunk_bytes)
        )
        return cast("Generator[Block | Batch, None, None]", items)

    def decoder(self) -> BlockDecoder | None:
        """Return the decoder of chunks, for records or for headers alone. Return None if the
        reference codecs read the whole file: the engine is ``construct``, or ``auto`` without
        kernels, or the limits allow fewer than 8 levels of nesting. Otherwise raise ValueError for
        an unknown column.
        """
        if self.kernels is None:
            return None
        kind = BlockDecoder if self.reader.options.records else HeaderDecoder
        is_strict = self.reader.options.policy is Policy.STRICT
        return kind(
            self.columns,
            limits=self.reader.options.limits,
            full_check=is_strict,
            rules=is_strict or self.reader.options.check_rules,
            kernels=self.kernels,
            sizes=self.sizes,
        )


class BlockReader:
    """Reader of one file of batches with the kernels; a faster :class:`~kafka_log.segment.reader.SegmentReader` with the same results."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        policy: Policy | str = Policy.KAFKA,
        limits: Limits | None = None,
        engine: Engine = "auto",
        records: bool = True,
        check_rules: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        tail: Tail | str = Tail.REFERENCE,
        salvage_records: bool = True,
        size: int | None = None,
        next_base: int | None = None,
        is_removed: Callable[[], bool] | None = None,
    ) -> None:
        """Store the options of :class:`~kafka_log.segment.reader.SegmentReader` for the passes over
        ``path``; nothing is opened yet. Raise ValueError for an unknown policy, engine or tail.
        """
        check_engine(engine)
        options: dict[str, Any] = {"limits": limits, "engine": engine, "records": records}
        options |= {
            "chunk_bytes": chunk_bytes,
            "tail": tail,
            "salvage_records": salvage_records,
            "size": size,
        }
        options |= {"next_base": next_base, "check_rules": check_rules, "is_removed": is_removed}
        self.policy = Policy(policy)
        self.options = options
        self.path = make_path(path)
        self.listed_size = size if Tail(tail) is Tail.ROLLED else None
        self.end: End | None = None

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches as Batch objects in file order, then set ``end``."""
        for item in self.items(COLUMNS):
            if isinstance(item, Block):
                yield from item.batches(os.fspath(self.path))
            else:
                yield item

    def items(
        self, columns: Sequence[str] = COUNTED, *, sizes: bool = False
    ) -> Iterator[Batch | Block]:
        """Yield the batches in file order, as Blocks where the kernels decode them, else as Batch
        objects. Then set ``end``, also after an error; it is None after an early stop. Blocks have
        ``columns`` of their records, which must include ``position`` and ``base_offset``; with
        ``sizes`` also sizes of compressed sections. Iterating raises CodecError for the first
        problem under ``strict``; else problems, also of opening, are in batches and ``end``. It
        raises FileNotFoundError for a missing file if no ``size`` was listed. Raise at once
        ValueError for an unknown column, if the kernels are used; ImportError if the engine is
        ``arrow`` and its modules cannot be imported.
        """
        scanner = self.scanner(columns, sizes=sizes)
        return self._note_end(scanner, scanner.items())

    def scanner(self, columns: Sequence[str], *, sizes: bool = False) -> BlockScanner:
        """Return a new pass over the file; nothing is opened, and ``columns`` are not checked yet.
        Raise ImportError for the engine ``arrow`` if its modules cannot be imported.
        """
        return BlockScanner(self.path, columns, self.policy, sizes=sizes, **self.options)

    def _note_end(
        self, scanner: BlockScanner, items: Iterator[Batch | Block]
    ) -> Iterator[Batch | Block]:
        """Yield ``items``, those of ``scanner``. Set ``end`` when the pass ends, also after an
        error; it is None if the caller stops early. Iterating raises what iterating ``items``
        raises.
        """
        try:
            yield from items
        finally:
            self.end = scanner.end
