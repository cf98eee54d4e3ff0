"""Parse all options of a read, and check them against each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from kafka_log import Policy
from kafka_log.read.internal_topics import VIEWS
from kafka_log.read.selection import Isolation, Selection
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import OnDamage
from pyspark_kafka_log.columns import METADATA_COLUMNS
from pyspark_kafka_log.options import reports, table
from pyspark_kafka_log.options.session import Session, parse_time_zone, to_nanoseconds
from pyspark_kafka_log.options.table import Given, Moment, Option
from pyspark_kafka_log.options.values import EARLIEST, LATEST, Bound, Offsets, OptionError

KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""The columns of Spark's own Kafka source."""


@dataclass(frozen=True)
class Files:
    """Selection of segment files, as in Spark's file sources.

    ``pattern`` matches names, ``after`` and ``before`` are exclusive modification times in nanoseconds since 1970. ``recursive`` looks in all
    directories below the paths. ``ignore_missing`` drops files that are gone when a task reads them.
    """

    pattern: str | None = None
    after: int | None = None
    before: int | None = None
    recursive: bool = False
    ignore_missing: bool = False
    ignore_corrupt: bool = False
    """Whether damage that would fail the query ends a file, and not the query."""

    @property
    def are_filtered(self) -> bool:
        """Whether names or modification times leave out files, so that a log may be read in part."""
        return (self.pattern, self.after, self.before) != (None, None, None)


@dataclass(frozen=True)
class Options:
    """The options of a read, checked. Without a selection all topics are read."""

    paths: tuple[str, ...] = ()
    files: Files = field(default_factory=Files)
    subscribe: tuple[str, ...] | None = None
    subscribe_pattern: str | None = None
    assign: frozenset[tuple[str, int]] | None = None
    starting_offsets: Bound | None = None
    ending_offsets: Bound | None = None
    starting_times: Offsets | int | None = None
    """Milliseconds since 1970 that take the place of ``starting_offsets``, for all partitions or each; None: those are not given."""
    ending_times: Offsets | int | None = None
    latest_if_none: bool = False
    """Whether a partition without a record as late as its starting time is read from its end on; else that is an error."""
    selection: Selection = field(default_factory=lambda: Selection(on_damage="raise"))
    """Selected records, except for offsets and topics, and the handling of damage."""
    columns: tuple[str, ...] | None = None
    fail_on_data_loss: bool = True
    corrupt_record: str = table.CORRUPT_RECORD.default
    view: str | None = None
    """One of Kafka's own topics, whose rows are read."""
    show_secrets: bool = False
    """Whether passwords and other secrets are shown in the rows of a view."""
    report: str | None = None
    """An answer about logs whose rows are read (:mod:`pyspark_kafka_log.reports`)."""
    include_headers: bool = False
    include_metadata: bool = False
    split_bytes: int = table.SPLIT_BYTES.default
    min_partitions: int | None = None
    max_records: int | None = None
    batch_rows: int = table.BATCH_ROWS.default
    max_decompressed: int | None = None
    engine: Engine = table.ENGINE.default
    deep: bool = False
    """Whether an answer is about every record, not headers and checksums only."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What stores are opened with (:mod:`pyspark_kafka_log.splits.stores`). There are secrets among it."""
    ignored: tuple[str, ...] = ()
    """Options that mean nothing here."""
    without_zone: tuple[str, ...] = ()
    """Options with a time without a zone, if the time zone of the session is unknown."""

    @property
    def ends_corrupt_files(self) -> bool:
        """Whether damage ends the file that it is in, and not the query."""
        return self.files.ignore_corrupt and self.selection.raises

    @property
    def planning(self) -> Selection:
        """The selection for planning: damage that ends a file when it is read is skipped, and a damaged batch's header is not used."""
        if not self.ends_corrupt_files:
            return self.selection
        return self.selection.but(policy=Policy.SALVAGE, on_damage="drop")


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""What ``load`` is given."""


def parse_paths(
    path: Paths,
    given: Mapping[str, str] | None = None,
    session: Session = Session(),  # noqa: B008
) -> Options:
    """Return the checked options of a query that reads one or several paths. One path replaces the
    option ``path`` in ``given``, several replace the option ``paths``; the other one of the two
    stays, and its paths are read as well. An empty list replaces ``paths``; if no path is left,
    reading raises OptionError. Raise OptionError for the first invalid or unknown option.
    """
    several = [path] if isinstance(path, (str, os.PathLike)) else path
    paths = [os.fspath(one) for one in several]
    said = {"path": paths[0]} if len(paths) == 1 else {"paths": json.dumps(paths)}
    return parse({**(given or {}), **said}, session=session)


def parse(given: Mapping[str, str], *, batch: bool = True, session: Session = Session()) -> Options:  # noqa: B008
    """Return the checked options of a query, with defaults for those not given; ``session`` has the
    defaults for time zone and ignoring missing or corrupt files. Raise :class:`OptionError` for the
    first invalid or unknown one, for options that contradict each other, or that the view does not
    take. With ``batch`` reject a start at the latest and an end at the earliest offset too.

    Args:
        given: The options by name, in any case.
        batch: Check the starting and ending offsets as those of a batch query.
        session: Settings of the session, for what the options do not say.
    """
    of = Given(given)
    view = of[table.VIEW]
    report = view if view in reports.REPORTS else None
    if report is not None:
        reports.check(report, of.names)
        view = None
    elif table.DEEP.name in of.names:
        views = " and ".join(name for name, taken in reports.REPORTS.items() if "deep" in taken)
        raise OptionError(
            table.DEEP.name,
            f"it applies only to the views {views}: leave it out, or set view to one of them",
        )
    columns, headers, metadata = _columns(of, view)
    subscribe, pattern, assign = _topics(of, view)
    on_damage, policy = (
        _record_damage(of) if report in (None, *reports.RAISING) else _report_damage(of)
    )
    starting_times = _times(of, table.STARTING_TIMESTAMP, table.STARTING_TIMES)
    ending_times = _times(of, table.ENDING_TIMESTAMP, table.ENDING_TIMES)
    # As in Spark's Kafka source, times come before offsets.
    starting = of[table.STARTING_OFFSETS] if starting_times is None else None
    ending = of[table.ENDING_OFFSETS] if ending_times is None else None
    parse_limits(of)
    if batch:
        _check_bound(table.STARTING_OFFSETS.name, "start", starting, LATEST)
        _check_bound(table.ENDING_OFFSETS.name, "end", ending, EARLIEST)
    return Options(
        paths=of[table.PATH] + of[table.PATHS],
        files=_files(of, session),
        subscribe=subscribe,
        subscribe_pattern=pattern,
        assign=assign,
        starting_offsets=starting,
        ending_offsets=ending,
        starting_times=starting_times,
        ending_times=ending_times,
        latest_if_none=of[table.STRATEGY] == "latest",
        selection=Selection(
            isolation=_isolation(of),
            control_records=of[table.INCLUDE_CONTROL_RECORDS],
            deleted_records=of[table.INCLUDE_DELETED_RECORDS],
            include=of[table.INCLUDE],
            replicas=of[table.REPLICAS],
            policy=policy,
            on_damage=on_damage,
        ),
        columns=columns,
        fail_on_data_loss=of[table.FAIL_ON_DATA_LOSS],
        corrupt_record=of[table.CORRUPT_RECORD],
        view=view,
        show_secrets=of[table.SHOW_SECRETS],
        report=report,
        include_headers=headers,
        include_metadata=metadata,
        split_bytes=of[table.SPLIT_BYTES],
        min_partitions=of[table.MIN_PARTITIONS],
        max_records=of[table.MAX_RECORDS],
        batch_rows=of[table.BATCH_ROWS],
        max_decompressed=of[table.MAX_DECOMPRESSED],
        engine=of[table.ENGINE],
        deep=of[table.DEEP],
        storage=of.storage,
        ignored=of.ignored,
        without_zone=_without_zone(of, session),
    )


def parse_limits(of: Given) -> tuple[int | None, int | None, int]:
    """Return the maximum and the minimum number of offsets of a micro-batch, each None if not
    given, and the maximum delay in milliseconds. Raise :class:`OptionError` if the minimum exceeds
    the maximum, or a value is invalid.
    """
    most, least = of[table.MAX_OFFSETS], of[table.MIN_OFFSETS]
    if most is not None and least is not None and least > most:
        raise OptionError(
            table.MIN_OFFSETS.name,
            f"it is larger than {table.MAX_OFFSETS.name}: lower the one or raise the other",
        )
    return most, least, of[table.MAX_DELAY]


def _files(of: Given, session: Session) -> Files:
    """Return the options that select segment files: name pattern, modification times, recursion,
    whether missing and corrupt files are ignored. The session decides the last two if they are not
    given. Raise OptionError for an invalid value of one of these options, or an unknown time zone.
    """
    missing, corrupt = of[table.IGNORE_MISSING_FILES], of[table.IGNORE_CORRUPT_FILES]
    return Files(
        of[table.PATH_GLOB_FILTER],
        _parse_time(of, table.MODIFIED_AFTER, session),
        _parse_time(of, table.MODIFIED_BEFORE, session),
        of[table.RECURSIVE_FILE_LOOKUP],
        session.ignore_missing if missing is None else missing,
        session.ignore_corrupt if corrupt is None else corrupt,
    )


def _parse_time(of: Given, option: Option[Moment | None], session: Session) -> int | None:
    """Return the time of an option in nanoseconds since 1970; None if it is not given. Its own time
    zone counts, else that of the option ``timeZone``, else the session's, else this machine's.
    Raise OptionError for text that is no time, an unknown time zone, or a time near the years 1 or
    9999 that this machine cannot convert from its own zone.
    """
    given = of[option]
    if given is None:
        return None
    when, name = given
    if name is not None:
        zone: tzinfo | None = parse_time_zone(option.name, name)
    elif (zone := of[table.TIME_ZONE]) is None and session.time_zone is not None:
        zone = parse_time_zone("spark.sql.session.timeZone", session.time_zone)
    return to_nanoseconds(option.name, when, zone)


def _without_zone(of: Given, session: Session) -> tuple[str, ...]:
    """Return the names of the options modifiedAfter and modifiedBefore that are given without a
    time zone. Return ``()`` if the option ``timeZone`` or the session has one. Raise OptionError
    for an invalid value of an option that is read: none if the session has a zone, only
    ``timeZone`` if that is given, else all three.
    """
    if session.time_zone is not None or of[table.TIME_ZONE] is not None:
        return ()
    times = {option.name: of[option] for option in (table.MODIFIED_AFTER, table.MODIFIED_BEFORE)}
    return tuple(
        name
        for name, given in times.items()
        if given is not None and given[1] is None and given[0].tzinfo is None
    )


def _record_damage(of: Given) -> tuple[OnDamage, Policy]:
    """Return what to do with damaged records (``raise``, ``drop`` or ``keep``, by the option mode),
    and the reader's policy, by default that of the mode. Raise OptionError for an invalid value, for
    the policy strict with a mode other than FAILFAST, or salvage with FAILFAST, the default mode.
    """
    on_damage, by_mode = of[table.MODE]
    policy: Policy = of[table.POLICY] or by_mode
    if policy is Policy.STRICT and on_damage != "raise":
        raise OptionError("policy", "strict stops at the first problem: the mode must be FAILFAST")
    if policy is Policy.SALVAGE and on_damage == "raise":
        raise OptionError(
            "policy", "salvage goes on after damage: the mode must be PERMISSIVE or DROPMALFORMED"
        )
    return on_damage, policy


def _report_damage(of: Given) -> tuple[OnDamage, Policy]:
    """Return how damage is handled and the policy, for reports whose rows describe damage themselves."""
    return "drop", of[table.POLICY] or Policy.KAFKA


def _times(
    of: Given, one: table.Option[int | None], each: table.Option[Offsets | None]
) -> Offsets | int | None:
    """Return the value of the option with one time for all partitions; else that of the option with
    times by partition; None if neither is given. Raise OptionError if either is invalid, also the
    one that is not used.
    """
    time, times = of[one], of[each]
    return times if time is None else time


def _isolation(of: Given) -> Isolation | None:
    """Return the isolation level of isolationLevel or kafka.isolation.level; None if neither is
    given. Raise OptionError if both are given and differ, or a value is invalid.
    """
    one, other = of[table.ISOLATION], of[table.KAFKA_ISOLATION]
    if one is not None and other is not None and one != other:
        raise OptionError(
            "isolationLevel",
            f"it is {one}, but kafka.isolation.level is {other}: set one of the two",
        )
    return one or other


def _topics(
    of: Given, view: str | None
) -> tuple[tuple[str, ...] | None, str | None, frozenset[tuple[str, int]] | None]:
    """Return the options subscribe, subscribePattern and assign, at most one of them not None. A
    view without any of them gets its own topic as subscribe. Raise OptionError if more than one is
    given, or a value is invalid.
    """
    subscribe, pattern, assign = of[table.SUBSCRIBE], of[table.SUBSCRIBE_PATTERN], of[table.ASSIGN]
    chosen = {"subscribe": subscribe, "subscribePattern": pattern, "assign": assign}
    given = [name for name, value in chosen.items() if value is not None]
    if len(given) > 1:
        raise OptionError(given[1], f"only one of {', '.join(chosen)} may be given")
    if view is not None and not given:
        subscribe = (VIEWS[view],)
    return subscribe, pattern, assign


def _columns(of: Given, view: str | None) -> tuple[tuple[str, ...] | None, bool, bool]:
    """Return the options ``columns`` (None if not given; whether such columns exist is not
    checked), includeHeaders and includeMetadata. Raise OptionError if ``columns`` is given and one
    of the others is true, includeHeaders is true with a view, a column is named twice, or a value
    is invalid.
    """
    columns = of[table.COLUMNS]
    headers, metadata = of[table.INCLUDE_HEADERS], of[table.INCLUDE_METADATA]
    if columns is not None and (headers or metadata):
        raise OptionError(
            "columns",
            "the schema already names the columns: leave out includeHeaders and includeMetadata",
        )
    if view is not None and headers:
        raise OptionError(
            "includeHeaders", "the rows of a view have no record headers: leave the option out"
        )
    return columns, headers, metadata


def _check_bound(name: str, verb: str, given: Bound | None, never: int) -> None:
    """Raise OptionError if ``given``, or the offset of any partition in it, is ``never``: a batch
    query cannot start at LATEST or end at EARLIEST. ``name`` is the option, ``verb`` "start" or
    "end" in the message.
    """
    word = {EARLIEST: "earliest", LATEST: "latest"}[never]
    if given == never:
        raise OptionError(
            name,
            f"a batch query cannot {verb} at {word}, because it would read nothing: give offsets, or leave the option out",
        )
    if isinstance(given, Mapping):
        for (topic, partition), offset in given.items():
            if offset == never:
                raise OptionError(
                    name,
                    f"a batch query cannot {verb} at {word} ({never}), which is given for partition {partition} of topic"
                    f" {topic}: give an offset",
                )


def default_columns(options: Options) -> tuple[str, ...]:
    """Return the columns that are read if the query gives no schema: those of the option
    ``columns``, which are not checked here, or of the report or view, or of Spark's Kafka source.
    Without that option add headers (records only) and metadata columns (records and views) if their
    options are set.
    """
    if options.columns is not None:
        return options.columns
    if options.report is not None:
        from pyspark_kafka_log.report_rows import report_schema

        return tuple(report_schema(options.report).names)
    if options.view is not None:
        from kafka_log.read.topic_views import RECORD_COLUMNS, topic_view

        return topic_view(options.view, None).columns + (
            RECORD_COLUMNS if options.include_metadata else ()
        )
    names: tuple[str, ...] = KAFKA_COLUMNS
    if options.include_headers:
        names += ("headers",)
    if options.include_metadata:
        names += METADATA_COLUMNS
    return names
