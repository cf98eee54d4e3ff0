"""Selection of records of logs: one set of filters for Python, the command line and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack, get_args

from kafka_log.logs.names import Include, State, parse_include
from kafka_log.logs.offset_ranges import widest_offsets
from kafka_log.logs.partition_filters import (
    MAX_PARTITION,
    Numbers,
    check_topic,
    parse_partitions,
    parse_topics,
)
from kafka_log.logs.partitions import Segment
from kafka_log.logs.replicas import Replicas
from kafka_log.read.arguments import flag, number, one_of, text_of, tuple_of
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.globs import PatternError
from kafka_log.segment.model import OnDamage, Policy
from kafka_log.segment.ranges import (
    EVERYTHING,
    Range,
    checked_offsets,
    checked_plain_offsets,
    counts_from_end,
    offsets_before,
)
from kafka_log.segment.row_selection import Aborted, Header, RowSelection
from kafka_log.segment.times import Times, checked_times

T = TypeVar("T")

Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATIONS: tuple[Isolation, ...] = get_args(Isolation)


class OtherFilters(TypedDict, total=False):
    """Keywords of a :class:`Selection` that select rows, without ``keys``. None is the default."""

    offsets: Range | None
    timestamps: Times | None
    headers: Header | Iterable[Header] | None
    producers: int | Iterable[int] | None
    isolation: Isolation | None
    control_records: bool
    deleted_records: bool
    on_damage: OnDamage | None


class RowFilters(OtherFilters, total=False):
    """Keywords of a :class:`Selection` that select rows."""

    keys: bytes | Iterable[bytes | None] | None


class Filters(RowFilters, total=False):
    """All keywords of a :class:`Selection` except the policy, which functions take as an argument of its own."""

    topics: str | Iterable[str] | None
    partitions: str | int | Iterable[Numbers] | None
    include: Include
    replicas: Replicas


class FiltersAndPolicy(Filters, total=False):
    """All keywords of a :class:`Selection`."""

    policy: Policy | str


@dataclass(frozen=True, init=False)
class Selection:
    """Filters of records. A record is selected if all filters match it.

    Args:
        topics: Names of topics and glob patterns such as ``orders-*``, or one text with commas between; None selects all. Patterns match
            Kafka's internal topics only if they begin with two underscores. A name or pattern that selects no topic is an error.
        partitions: Numbers of partitions and ranges of them, or a text such as ``0-3,7``; None selects all. Each number, and of each
            range at least one, must exist.
        offsets: Range of offsets, (first, end): ``first`` is included, ``end`` is not, None is no bound. Negative offsets count from
            the end of each partition, as in Python slices: (-5, None) are the last 5 offsets, which compaction and markers may leave with
            fewer records. That end includes segments that ``include`` adds; with ``read_committed`` it is at most the last stable offset.
        timestamps: Range of timestamps, as ``offsets``: milliseconds since 1970, datetimes or texts; or one text as on the command line:
            ``2026-11-22`` (that day), ``-2h:``.
        keys: Select records with one of these keys: bytes, or None for records without a key.
        headers: Select records that have all of these record headers: names, or pairs of a name and a value (None: null).
        producers: Select records of one of these producer ids; -1 stands for records without one.
        isolation: ``read_uncommitted`` (also if None), or ``read_committed``, which leaves out records of aborted transactions and all records
            from the last stable offset on.
        control_records: Include control records: transaction markers, leader changes and others that brokers write.
        deleted_records: Include records before the log start offset of their partition, which DeleteRecords has deleted.
        include: States of segments to add to the live ones: names, one text with commas between them, or ``all``
            (:data:`kafka_log.logs.names.State`).
        replicas: Handling of a partition that lies in several directories: ``error`` raises, ``newest`` reads the copy with the highest leader
            epoch, then end offset, ``keep`` reads all copies.
        policy: Strictness of the reader: ``kafka`` (default), ``strict`` or ``salvage``.
        on_damage: Handling of damage: ``raise``, ``keep`` or ``drop``. None is ``keep`` under ``salvage``, else ``raise``
            (:class:`kafka_log.segment.scanner.Scanner`).

    Raises:
        TypeError: For an unknown keyword.
        ValueError: For an impossible value. The message names the filter.
    """

    topics: tuple[str, ...] | None
    partitions: tuple[Numbers, ...] | None
    offsets: Range
    timestamps: Range
    keys: tuple[bytes | None, ...] | None
    headers: tuple[Header, ...]
    producers: tuple[int, ...] | None
    isolation: Isolation | None
    control_records: bool
    deleted_records: bool
    include: tuple[State, ...]
    replicas: Replicas
    policy: Policy
    on_damage: OnDamage | None

    def __init__(self, **filters: Unpack[FiltersAndPolicy]) -> None:
        """Check all filters. Raises TypeError for an unknown one, and ValueError for an impossible value."""
        given: dict[str, Any] = dict(filters)
        unknown = sorted(given.keys() - _CHECKS.keys())
        if unknown:
            raise TypeError(f"there is no filter {unknown[0]!r}; known: {', '.join(_CHECKS)}")
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, given.get(name)))

    def but(self, **filters: Unpack[FiltersAndPolicy]) -> Selection:
        """Return a copy with other values for some filters. Raise ValueError if a value is invalid,
        TypeError for an unknown filter.
        """
        return Selection(**{f.name: getattr(self, f.name) for f in fields(self)} | dict(filters))

    @property
    def damage(self) -> OnDamage:
        """Handling of damage, with the default of the policy resolved: ``raise``, ``keep`` or ``drop``."""
        return self.on_damage or ("keep" if self.policy is Policy.SALVAGE else "raise")

    @property
    def raises(self) -> bool:
        """Whether damage is an error."""
        return self.damage == "raise"

    def resolve_offsets(self, segments: Sequence[Segment], stable: int | None = None) -> Selection:
        """Return the selection for one partition, with negative offsets, which count from its end,
        replaced by absolute ones; the selection itself if it has none. The end is the one after the
        last record of any segment, by index and headers, or ``stable`` (None: unknown) if that is
        lower. Damaged and unreadable files are ignored, except that CodecError is raised for them
        under ``strict``.
        """
        if not counts_from_end(self.offsets):
            return self
        from kafka_log.logs.replicas import (
            read_end_offset,  # headers are read: not for other selections
        )

        end = read_end_offset(segments, self.policy)
        end = end if stable is None else min(end, stable)
        return self.but(offsets=offsets_before(self.offsets, end))

    def rows(self, end: int | None = None, aborted: Aborted | None = None) -> RowSelection:
        """Return the row filter for one file, with no offsets from ``end`` on (None: no limit) and
        without the transactions ``aborted``; ``isolation`` alone excludes none. Raise ValueError if
        offsets count from the end of a partition; :meth:`resolve_offsets` makes them absolute.

        Args:
            end: Offset from which on nothing is read. None: no limit.
            aborted: Transactions whose records are left out, by ``isolation`` (:mod:`kafka_log.read.isolation`).
        """
        low, high = checked_plain_offsets("offsets", self.offsets)
        if end is not None:
            high = end if high is None else min(end, high)
            low = None if low is None else min(low, high)
        return RowSelection(
            (low, high),
            self.timestamps,
            self.control_records,
            aborted or Aborted(),
            self.keys,
            self.headers,
            self.producers,
        )

    def batches(self) -> RowSelection:
        """Return the filter for the batches of a file by their headers, control batches included.
        Raise ValueError if the selection has a filter that batch headers cannot answer (keys,
        headers, ``read_committed``), or offsets that count from the end.
        """
        of_records = {
            "keys": self.keys is not None,
            "headers": bool(self.headers),
            "isolation": self.isolation == "read_committed",
        }
        for name, is_given in of_records.items():
            if is_given:
                raise ValueError(
                    f"{name} filters records, and batch headers do not tell it: leave it out, or read records"
                )
        return self.but(control_records=True).rows()

    def to_keywords(self) -> dict[str, Any]:
        """Return the filters that differ from their defaults, policy and on_damage included, as
        keywords for a Selection.
        """
        every = Selection()
        return {
            f.name: value
            for f in fields(self)
            if (value := getattr(self, f.name)) != getattr(every, f.name)
        }


def change_selection(
    selection: Selection | None, policy: Policy | str | None, filters: Any
) -> Selection:
    """Return ``selection`` (None: the default one) with other values for the filters ``filters``,
    and ``policy`` unless it is None. Raise ValueError if ``selection`` is no Selection, or a filter
    has an impossible value; TypeError for an unknown filter.
    """
    if not isinstance(selection, Selection | None):
        raise ValueError(f"selection is {selection!r}: a Selection is expected")
    given = filters if policy is None else {**filters, "policy": policy}
    return Selection(**given) if selection is None else selection.but(**given)


def limit_to_segment(rows: RowSelection, segment: Segment) -> RowSelection:
    """Return a row filter limited to ``segment.overlap_limits``, from the first offset (included)
    to the end (excluded); an empty range if none is left. Return ``rows`` itself without such
    limits. Rows that lie elsewhere than the name of a remote copy says are read if no other segment
    overlaps that copy there.
    """
    if segment.overlap_limits == EVERYTHING:
        return rows
    (low, high), (first, end) = rows.offsets, segment.overlap_limits
    lows, highs = (
        [x for x in (low, first) if x is not None],
        [x for x in (high, end) if x is not None],
    )
    high = min(highs, default=None)
    low = max(lows, default=None)
    return replace(rows, offsets=(low if low is None or high is None else min(low, high), high))


def filter_for_segment(
    rows: RowSelection, segment: Segment, following: Segment | None
) -> RowSelection:
    """Return a row filter for one segment. Its offsets are limited to ``segment.overlap_limits``,
    usually no limit; only a remote copy may have one. It keeps the aborted transactions that overlap the
    segment: from its base offset to the end of ``segment.offsets``, else to the base offset of
    ``following``, the next segment (None: no end), which does not limit the filter's offsets.

    A remote copy may reach beyond the start of the next segment: then it keeps the transactions of both.
    """
    narrowed = limit_to_segment(rows, segment)
    if not rows.aborted:
        return narrowed
    first, end = widest_offsets(segment, following)
    end = end if segment.offsets[1] is None else segment.offsets[1]
    return replace(narrowed, aborted=rows.aborted.limit_to_offsets(first, end))


# ---------------------------------------------------------------- what can be


def _key(name: str, value: Any) -> bytes | None:
    """Return a key as bytes; None stays None. Raise ValueError for any type but bytes, bytearray
    and memoryview.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"{name} is {value!r}: bytes are expected, or None for records without a key")


def _header(name: str, value: Any) -> Header:
    """Return a filter of record headers: a str, the name of a header, unchanged, or a pair of name
    and value (bytes or None) as a tuple. Raise ValueError, which names the argument ``name``, for
    anything else, and for a name with a lone surrogate, which no header has.
    """
    header, content = value if isinstance(value, tuple | list) and len(value) == 2 else (value, None)  # fmt: skip
    if isinstance(header, str) and (content is None or isinstance(content, bytes)):
        if utf8(header) != header:
            raise ValueError(
                f"{name} is {value!r}: the name of a header is UTF-8, without lone surrogates; other bytes are read as U+FFFD"
            )
        return header if isinstance(value, str) else (header, content)
    raise ValueError(
        f"{name} is {value!r}: the name of a header is expected, or (name, value) with bytes or None for a value"
    )


def _headers(name: str, value: Any) -> tuple[Header, ...]:
    """Return one or several record headers as a tuple without duplicates; ``()`` for None. A tuple
    of two items, the second bytes or None, is one header. Raise ValueError if a value is neither a
    name nor a pair.
    """
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], bytes | None):
        return (_header(name, value),)
    return tuple_of(str, _header)(name, value) or ()


def _states(name: str, value: Any) -> tuple[State, ...]:
    """Return segment states as a tuple without ``live``, in the order of STATES, from names, one
    text with commas, ``all`` or None. Raise ValueError, which names the argument, for an unknown
    state or another type.
    """
    try:
        return parse_include(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except TypeError:
        raise ValueError(f"{name} is {value!r}: names of states are expected") from None


def _policy(name: str, value: Any) -> Policy:
    """Return a policy by its name, ``kafka`` for None. Raises ValueError for an unknown name."""
    one_of(tuple(Policy))(name, value)
    return Policy.KAFKA if value is None else Policy(value)


def _topics(name: str, value: Any) -> tuple[str, ...] | None:
    """Return names and patterns of topics as a tuple, from one text with commas or several texts;
    None for None, ``()`` for several of none. Each comes once. Raise ValueError for another type,
    an invalid pattern, or a text without a name; whether a topic exists is not checked.
    """
    try:
        if isinstance(value, str):
            return parse_topics(value)
        found: tuple[str, ...] | None = tuple_of(str, text_of("names of topics"))(name, value)
        return None if found is None else tuple(map(check_topic, found))
    except PatternError as error:
        raise ValueError(f"{name}: {error}") from None


def _partitions(name: str, value: Any) -> tuple[Numbers, ...] | None:
    """Return numbers and ranges of partitions as a tuple, each once, from a text such as ``0-3,7``
    (3 included), a number or several of both; None for None, () for several of none. A range alone
    is the numbers in it, with any step, perhaps none. Raise ValueError, which names the argument,
    for other values, an empty text, and a range among several that is empty or has steps.
    """
    if isinstance(value, str):
        try:
            return parse_partitions(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    found: tuple[Numbers, ...] | None = tuple_of(int, _number_or_range)(name, value)
    return found


def _number_or_range(name: str, value: Any) -> Numbers:
    """Return a partition number or a range of them. Raise ValueError for other values, an empty range, or one with steps."""
    check = number(0, MAX_PARTITION, "numbers of partitions")
    if not isinstance(value, range):
        return check(name, value)
    if value.step != 1 or not value:
        raise ValueError(
            f"{name} is {value!r}: a range of partitions has no steps, and is not empty"
        )
    return range(check(name, value.start), check(name, value.stop - 1) + 1)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "topics": _topics,
    "partitions": _partitions,
    "offsets": checked_offsets,
    "timestamps": checked_times,
    "keys": tuple_of((bytes, bytearray, memoryview), _key),
    "headers": _headers,
    "producers": tuple_of(int, number(-1 << 63, (1 << 63) - 1, "producer ids")),
    "isolation": one_of(ISOLATIONS),
    "control_records": flag,
    "deleted_records": flag,
    "include": _states,
    "replicas": lambda name, value: one_of(get_args(Replicas))(name, value or "error"),
    "policy": _policy,
    "on_damage": one_of(get_args(OnDamage)),
}

__all__ = [
    "EVERYTHING",
    "ISOLATIONS",
    "Filters",
    "Header",
    "Isolation",
    "Selection",
    "change_selection",
    "limit_to_segment",
]
