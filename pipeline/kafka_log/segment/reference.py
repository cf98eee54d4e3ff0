"""Decoding of one entry to a :class:`Batch` by the generated Construct codecs.

An engine is a function like :func:`construct_engine`. The generated codecs and the generated rows of the views know the bytes; this
module fills the fields of Batch and Record by name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import ChecksumError, CodecError, TruncatedError, ValueRefused
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.parsing import Opened
from codecgen.runtime.rows import Case, Place, parse_rest, row_items
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.batches import BATCHES
from kafka_codecs.rows.records import RECORDS
from kafka_log.segment import inner_messages
from kafka_log.segment.control import read_control
from kafka_log.segment.framing import HEADER_START, layout_of
from kafka_log.segment.model import UNKNOWN_VERSION, Batch, Policy, Problem, Record, is_own_checksum
from kafka_log.segment.row_values import MORE_OF_BATCH, MORE_OF_RECORD, OF_BATCH, OF_RECORD

Engine = Callable[[bytes, int, str, Policy, Limits, bool, bool], Batch]

_HEADS = {
    case: (case.fields(OF_BATCH + MORE_OF_BATCH), case.values(OF_BATCH), case.values(MORE_OF_BATCH))
    for case in BATCHES.cases
}
_HEADER = BATCHES.header(OF_BATCH + MORE_OF_BATCH)
_NO_FRAME = (None, 0, 0)
_ROWS = {case: (case.values(OF_RECORD), case.values(MORE_OF_RECORD)) for case in RECORDS.cases}


def construct_engine(
    data: bytes,
    position: int,
    file: str,
    policy: Policy,
    limits: Limits,
    with_records: bool,
    check_rules: bool = False,
) -> Batch:
    """Return the entry with the bytes ``data``, at ``position`` of ``file``, as a Batch. Without
    ``with_records`` record batches are not decompressed and have no records; legacy messages have
    theirs. ``check_rules`` adds broken rules for producers to the findings. Raise CodecError for
    the first problem under ``strict``, else only if the header cannot be parsed (``kafka`` accepts
    one that is cut off, as an invalid batch). Other problems are in the batch, with the records
    before them; a wrong checksum is in its findings, and makes ``is_valid`` False.

    Args:
        data: All bytes of the entry.
        position: Position of the entry in the file, for errors and the batch.
        file: Name of the file, for errors.
        policy: Strictness. Unless ``strict``, problems are in the batch, with the records before them.
        limits: Limits of memory and nesting.
        with_records: False does not decompress batches whose header states the record count, and leaves out their records.
        check_rules: Add the rules of the layout that the batch breaks to its findings, under every policy.
    """
    session = Session(
        strict=policy is Policy.STRICT,
        limits=limits,
        file=file,
        any_version=True,
        torn=policy is Policy.SALVAGE,
        rules=check_rules,
    )
    source = Source(data, session, origin=position)
    magic = LOG_ENTRY.peek(source)
    layout = layout_of(magic)
    opened = layout.open(source)
    if opened.error is not None and session.strict:
        try:
            raise opened.error
        finally:
            del opened  # the error's traceback holds this frame
    place = Place(position, len(data))
    if opened.error is not None and len(data) < _header_size(layout):
        if policy is Policy.KAFKA:
            return _batch_of_incomplete_header(layout, data, place, opened.error, session)
        raise opened.error
    head = BATCHES.case(layout, opened.fields) if opened.error is None else _head(layout, opened)
    if head is None:
        name = layout.layout_name
        raise ValueRefused(
            f"the codecs cannot read batches of the layout {name}: the view batches has no rows for it; add them to the schema of"
            " the view and generate the codecs again",
            source.where(0),
        )
    batch = _batch(head, opened.fields, place)
    problems = _unknown_codec(batch, head, session)
    if opened.error is not None:
        problems += _no_base_offset(batch, opened.error)
        problems.append(Problem("records", opened.error))
    elif with_records or batch.record_count is None:
        problems = _read_records(batch, layout, opened, session, place, problems)
        if problems and problems[-1].at == "compression":  # there are no records to look for
            problems.append(Problem("records", problems[-1].error))
    if magic not in LOG_ENTRY.cases:
        problems = [_unknown_version(magic, layout, source), *problems]
    batch.is_valid = not any(map(is_own_checksum, session.findings))
    for problem in problems:
        problem.error.without_frames()
    batch.problems = tuple(problems)
    batch.section = session.section
    batch.findings = tuple(session.findings)
    return batch


def _unknown_version(magic: int, layout: Layout, source: Source) -> Problem:
    """Return the problem of an entry whose magic byte is no version, which is read as ``layout``."""
    known = next(version for version, case in LOG_ENTRY.cases.items() if case is layout)
    reason = f"version {magic} is unknown: what is read as version {known} may be wrong"
    return Problem(UNKNOWN_VERSION, ValueRefused(reason, source.where(LOG_ENTRY.offset)))


def header_of(data: bytes, position: int, size: int, file: str) -> Batch | None:
    """Return the entry of ``size`` bytes that begins with ``data``, by its header alone:
    unverified, and without records. Return None if the magic byte is unknown, the header is
    incomplete, or the entry is no batch. Raise CodecError if ``data`` ends before the magic byte,
    or a header field does not parse.
    """
    source = Source(
        data, Session(strict=False, file=file), end=min(len(data), size), origin=position
    )
    magic = LOG_ENTRY.peek(source)
    if magic not in LOG_ENTRY.cases:
        return None
    return _header(LOG_ENTRY.cases[magic], source, Place(position, size))


def _header(layout: Layout, source: Source, place: Place) -> Batch | None:
    """Return the batch that the header at the head of ``source`` describes, unverified and without
    records; a legacy message is a batch too. Return None if the entry ends within the header, or
    entries of ``layout`` hold no records. Raise CodecError if a header field does not parse.
    """
    try:
        row = _HEADER.row(layout, source, place)
    except TruncatedError:
        return None
    if row is None:
        return None
    batch = Batch(*row[: len(OF_BATCH)])
    batch.has_base_offset = batch.base_offset is not None
    batch.more = row[len(OF_BATCH) :]
    return batch


def plain_batches(data: memoryview, position: int) -> Generator[Batch, None, int]:
    """Yield undamaged batches, without records but with verified checksums, from ``data``, which
    begins at byte ``position`` of a file. Return 0 at the first one that is damaged, unusual or a
    legacy message, else the number of bytes that the next batch needs (of its header, if that is
    incomplete).
    """
    at, size = 0, len(data)
    while size - at >= HEADER_START:
        layout, _, length = LOG_ENTRY.plain_frame(data, at) or _NO_FRAME
        if layout is None or not layout.leading_fields.leaves_an_array:
            return 0
        end = at + length
        if end > size:
            return length
        entry = layout.leading_fields.checked(data, at, end)
        case = None if entry is None else BATCHES.case(layout, entry)
        if case is None:
            return 0
        batch = _batch(case, entry, Place(position + at, length))
        if batch.record_count is None:
            return 0
        yield batch
        at = end
    return HEADER_START


def _header_size(layout: Layout) -> int:
    """Return the size of the fields at fixed positions with which each entry of a layout begins."""
    return max(end for _, end in _header_ranges(layout))


def _header_ranges(layout: Layout) -> list[tuple[int, int]]:
    """Return start and end of each field of a layout that has a fixed position."""
    names = [f.name for f in layout.fields if layout.is_fixed(f.name)]
    return [(layout.offset_of(n), layout.offset_of(n) + layout.size_of(n)) for n in names]


def _batch_of_incomplete_header(
    layout: Layout, data: bytes, place: Place, error: CodecError, session: Session
) -> Batch:
    """Return an entry that ends within its header as an invalid batch with one problem; fields that
    are missing are -1, and the record count is None. Kafka's reader continues after such an entry.
    Raise ``error`` if not even that header can be read.
    """
    whole = max(end for _, end in _header_ranges(layout) if end <= len(data))
    padded = data[:whole].ljust(_header_size(layout), b"\xff")
    quiet = Session(strict=False, file=session.file)
    batch = _header(layout, Source(padded, quiet, origin=place.position), place)
    if batch is None:
        raise error
    batch.record_count = None
    batch.is_valid = False
    batch.problems = (Problem("header", error.without_frames()),)
    batch.findings = tuple(session.findings)
    return batch


def _head(layout: Layout, opened: Opened) -> Case | None:
    """Return the case of the view ``batches`` (which fields become which columns) for an opened
    entry. Return None if there is none. Raise the error of the entry if a header field is missing
    because of it.
    """
    for case in BATCHES.cases:
        if case.layout is layout:
            if opened.error is not None and any(
                name not in opened.fields for name in _HEADS[case][0]
            ):
                raise opened.error
            if case.when is None or case.when(opened.fields):
                return case
    return None


def _batch(case: Case, entry: Any, place: Place) -> Batch:
    """Return a Batch with the columns that ``case`` takes from the header fields ``entry``, without
    records and problems.
    """
    _, values, more = _HEADS[case]
    batch = Batch(*[value(entry, None, place) for value in values])
    batch.has_base_offset = batch.base_offset is not None
    if more:
        batch.more = tuple([value(entry, None, place) for value in more])
    return batch


def _unknown_codec(batch: Batch, case: Case, session: Session) -> list[Problem]:
    """Return the problems of an unknown codec number; ``[]`` if it is known. They come from
    ``session``, with which the batch was parsed: each of its findings at a field from which
    ``case`` takes the codec becomes a Problem at ``compression``.
    """
    if batch.compression is not None:
        return []
    paths = case.columns["codec"].paths
    return [Problem("compression", e) for e in session.findings if e.where.path in paths]


# ---------------------------------------------------------------- records


def _read_records(
    batch: Batch,
    layout: Layout,
    opened: Opened,
    session: Session,
    place: Place,
    problems: list[Problem],
) -> list[Problem]:
    """Append the readable records of an ``opened`` entry to ``batch``. Return ``problems``, with
    those of the error that ended reading, if there was one, added. Raise CodecError for the first
    error in a strict session. ``place`` is position and size of the entry, from which columns are
    computed.
    """
    case = RECORDS.case(layout, opened.fields)
    if case is None:
        return problems
    entry = opened.fields
    items: Iterable[tuple[Any, CodecError | None]] = ()
    lost: CodecError | None = None
    try:
        if case.each is None:
            parse_rest(opened)
            items = [(entry, _first_wrong(session.findings, 0))]
        elif not case.whole:
            items = _with_checksum_errors(row_items(case, opened, RECORDS.columns), session)
        elif session.strict:  # values depend on the first or the last of them
            items = list(_with_checksum_errors(opened.items, session))
            entry[case.each] = [item for item, _ in items]
        else:
            found, lost = inner_messages.find_messages(case, opened, session)
            if not found[0].is_wrapper:
                first = found[0].head
                batch.base_offset = case.columns["base_offset"].value(entry, first, place)
            if lost is not None and inner_messages.has_relative_offsets(case, entry):
                problems = [*problems, Problem("offsets", lost)]
            messages = inner_messages.read_messages(
                case, opened, found, session, is_whole=lost is None
            )
            items = _with_checksum_errors(messages, session)
        _add_records(batch, case, entry, items, session, place)
        if lost is not None:
            raise lost
    except CodecError as error:
        error.located(position=place.position, file=session.file)
        if session.strict:
            raise
        return [*_no_base_offset(batch, error), *problems, Problem("records", error)]
    return problems


def _no_base_offset(batch: Batch, error: CodecError) -> list[Problem]:
    """Return a list with the problem that the base offset is unknown, empty if the batch has one."""
    return [Problem("baseOffset", error)] if batch.base_offset is None else []


def _add_records(
    batch: Batch,
    case: Case,
    entry: Any,
    items: Iterable[tuple[Any, CodecError | None]],
    session: Session,
    place: Place,
) -> None:
    """Append a record to ``batch`` for each of ``items``, pairs of an element and its checksum
    error or None; control records are parsed. Raise CodecError if the iterator does, and in a
    strict session if a control record does not parse. The first element sets a base offset that the
    header lacks.
    """
    values, more = _ROWS[case]
    records = batch.records
    for item, wrong in items:
        if batch.base_offset is None:
            batch.base_offset = case.columns["base_offset"].value(entry, item, place)
        further = tuple([value(entry, item, place) for value in more]) if more else ()
        found = [value(entry, item, place) for value in values]
        record = Record._make([*found, None, wrong, further])
        records.append(_with_control(record, session, place) if batch.is_control else record)


def _with_control(record: Record, session: Session, place: Place) -> Record:
    """Return a copy of a control record with its parsed key and value in ``control``. If they do
    not parse, raise CodecError in a strict session; else ``control`` has the error.
    """
    control = read_control(
        record.key,
        record.value,
        strict=session.strict,
        file=session.file or "",
        position=place.position,
    )
    return record._replace(control=control)


def _with_checksum_errors(
    items: Iterator[Any], session: Session
) -> Iterator[tuple[Any, CodecError | None]]:
    """Yield each of ``items`` with the ChecksumError that reading it added to the findings, None if
    it added none. Errors that the iterator raises are let through.
    """
    findings = session.findings
    noticed = len(findings)
    for item in items:
        if len(findings) == noticed:
            yield item, None
        else:
            wrong = _first_wrong(findings, noticed)
            noticed = len(findings)
            yield item, wrong


def _first_wrong(findings: list[Any], start: int) -> CodecError | None:
    """Return the first checksum error among the findings from index ``start`` on, None if there is none."""
    return next((e for e in findings[start:] if isinstance(e, ChecksumError)), None)
