"""The options of ``kafka-log``, checked. Names and JSON forms are those of Spark's own Kafka source.

| option | values | default |
| --- | --- | --- |
| ``path``, ``paths`` | what ``load`` is given: broker directories, partition directories, segment files, ``*`` patterns | |
| ``subscribe`` | topics, with commas between | all topics |
| ``subscribePattern`` | a regular expression that matches the whole name of a topic | |
| ``assign`` | ``{"topicA":[0,1],"topicB":[2]}`` | |
| ``startingOffsets`` | ``earliest``, or ``{"topicA":{"0":23,"1":-2}}`` (-2: earliest) | ``earliest`` |
| ``endingOffsets`` | ``latest``, or ``{"topicA":{"0":50,"1":-1}}`` (-1: latest); the offset itself is not read | ``latest`` |
| ``isolationLevel`` | ``read_uncommitted``, ``read_committed``; also as ``kafka.isolation.level`` | ``read_uncommitted`` |
| ``includeHeaders`` | ``true`` adds the column ``headers`` | ``false`` |
| ``includeMetadata`` | ``true`` adds all columns that say where a record comes from | ``false`` |
| ``columns`` | exactly these columns, with commas between | |
| ``view`` | ``offsets``, ``groups``, ...: what the records of one of Kafka's own topics say, in the place of these | |
| ``includeControlRecords`` | ``true`` reads transaction markers and the like as rows too | ``false`` |
| ``mode`` | ``FAILFAST``, ``PERMISSIVE``, ``DROPMALFORMED`` | ``FAILFAST`` |
| ``policy`` | ``kafka``, ``strict``, ``salvage`` | by ``mode`` |
| ``replicas`` | ``error``, ``keep``: what to do when two directories hold one partition | ``error`` |
| ``splitBytes`` | larger segments are read by more than one task | 32 MiB |
| ``batchRows`` | rows in one Arrow batch, at most | 16384 |
| ``maxDecompressedBytes`` | bytes that one compressed batch may hold | 256 MiB |
| ``engine`` | ``auto``, ``arrow``, ``construct``: the codecs that read; the rows are the same | ``auto`` |
| ``failOnDataLoss`` | ``false`` only | |

``FAILFAST`` fails the query at the first damage, naming file, byte and field: a record that cannot be read, a wrong checksum,
a timestamp that microseconds cannot hold. An unfinished batch at the end of a file is no damage: a broker that is writing
leaves it so. ``PERMISSIVE`` keeps every row that can be read, goes on after damage, gives null for a timestamp that does
not fit, and says in the column ``problem`` (if asked for) what was wrong. ``DROPMALFORMED`` leaves out damaged batches as a whole,
and records whose timestamp does not fit, and goes on after damage.

``policy`` says what damage is: ``kafka`` takes what Apache Kafka's own reader takes, ``strict`` only what the formats
allow (it needs FAILFAST), ``salvage`` is ``kafka``, gives the whole records of torn batches and looks for the next batch after damage.
FAILFAST goes with ``kafka``, the other modes with ``salvage``; with ``kafka`` they read a segment up to where Apache Kafka's
reader stops.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kafka_log import Policy
from kafka_log.segment.kernels import ENGINES, Engine
from kafka_log.segment.model import OnDamage
from kafka_log.tables.own_topics import VIEWS
from kafka_log.tables.selection import ISOLATIONS, Selection
from kafka_log.tables.splits import METADATA_COLUMNS

S = TypeVar("S", bound=str)
T = TypeVar("T")

EARLIEST, LATEST = -2, -1

Offsets = Mapping[tuple[str, int], int]
"""An offset for each topic and partition; EARLIEST and LATEST stand for the ends."""


class OptionError(ValueError):
    """An option that cannot be taken as it is. ``option`` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(option, reason)
        self.option = option
        self.reason = reason

    def __str__(self) -> str:
        return f"kafka-log: option {self.option}: {self.reason}"


@dataclass(frozen=True)
class Options:
    """All options, checked. Without topics all are read."""

    paths: tuple[str, ...] = ()
    subscribe: tuple[str, ...] | None = None
    subscribe_pattern: str | None = None
    assign: frozenset[tuple[str, int]] | None = None
    starting_offsets: Offsets | None = None
    ending_offsets: Offsets | None = None
    selection: Selection = field(default_factory=lambda: Selection(on_damage="raise"))
    """Which records are wanted, but for their offsets and topics, and what becomes of damage."""
    columns: tuple[str, ...] | None = None
    view: str | None = None
    include_headers: bool = False
    include_metadata: bool = False
    keep_replicas: bool = False
    split_bytes: int = 32 << 20
    batch_rows: int = 16_384
    max_decompressed: int | None = None
    engine: Engine = "auto"


MODES: Mapping[str, tuple[OnDamage, Policy]] = {
    "FAILFAST": ("raise", Policy.KAFKA),
    "PERMISSIVE": ("keep", Policy.SALVAGE),
    "DROPMALFORMED": ("drop", Policy.SALVAGE),
}

KNOWN = (
    "path",
    "paths",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "isolationLevel",
    "kafka.isolation.level",
    "includeHeaders",
    "includeMetadata",
    "columns",
    "view",
    "includeControlRecords",
    "mode",
    "policy",
    "replicas",
    "splitBytes",
    "batchRows",
    "maxDecompressedBytes",
    "engine",
    "failOnDataLoss",
)

_BY_TIME = "offsets are not looked up by time; filter on the column timestamp instead"
_NO_BROKER = "no broker is asked; leave it out"
REFUSED = {
    "startingTimestamp": _BY_TIME,
    "endingTimestamp": _BY_TIME,
    "startingOffsetsByTimestamp": _BY_TIME,
    "endingOffsetsByTimestamp": _BY_TIME,
    "startingOffsetsByTimestampStrategy": _BY_TIME,
    "minPartitions": "set splitBytes: segments larger than that are read by more than one task",
    "maxRecordsPerPartition": "set splitBytes: segments larger than that are read by more than one task",
    "maxOffsetsPerTrigger": "logs are not read as streams",
    "minOffsetsPerTrigger": "logs are not read as streams",
    "maxTriggerDelay": "logs are not read as streams",
    "groupIdPrefix": _NO_BROKER,
    "kafkaConsumer.pollTimeoutMs": _NO_BROKER,
    "fetchOffset.numRetries": _NO_BROKER,
    "fetchOffset.retryIntervalMs": _NO_BROKER,
}


@dataclass
class _Given:
    """The options as given, with their names in lower case; what is asked for is taken away."""

    values: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, read: Callable[[str, str], T], default: T) -> T:
        value = self.values.pop(name.lower(), None)
        return default if value is None else read(name, value)


def parse(given: Mapping[str, str]) -> Options:
    """The options, checked. Raises :class:`OptionError` for the first that cannot be taken, also for unknown ones."""
    left = _Given({str(name).lower(): str(value) for name, value in given.items()})
    _refuse(left.values)
    on_damage, policy = left.take("mode", _mode, MODES["FAILFAST"])
    policy = left.take("policy", _policy, policy)
    _check_policy(policy, on_damage)
    isolation = _one_of(*ISOLATIONS)
    levels = {
        left.take("isolationLevel", isolation, None),
        left.take("kafka.isolation.level", isolation, None),
    } - {None}
    if len(levels) > 1:
        raise OptionError("isolationLevel", "kafka.isolation.level says something else")
    view = left.take("view", _one_of(*VIEWS), None)
    subscribe = left.take("subscribe", _names, None)
    pattern = left.take("subscribePattern", _pattern, None)
    assign = left.take("assign", _assign, None)
    chosen = {"subscribe": subscribe, "subscribePattern": pattern, "assign": assign}
    given_names = [name for name, value in chosen.items() if value is not None]
    if view is not None and not given_names:
        subscribe = (VIEWS[view],)
    if len(given_names) > 1:
        raise OptionError(given_names[1], f"only one of {', '.join(chosen)} may be given")
    columns = left.take("columns", _names, None)
    headers = left.take("includeHeaders", _boolean, False)
    metadata = left.take("includeMetadata", _boolean, False)
    if columns is not None and (headers or metadata):
        raise OptionError(
            "columns", "it names all columns: leave out includeHeaders and includeMetadata"
        )
    if view is not None and headers:
        raise OptionError("includeHeaders", "the rows of a view have no headers")
    left.take("failOnDataLoss", _data_loss, False)
    nothing: tuple[str, ...] = ()
    options = Options(
        paths=left.take("path", _path, nothing) + left.take("paths", _paths, nothing),
        subscribe=subscribe,
        subscribe_pattern=pattern,
        assign=assign,
        starting_offsets=left.take("startingOffsets", _starting, None),
        ending_offsets=left.take("endingOffsets", _ending, None),
        selection=Selection(
            isolation=next(iter(levels), None),
            control_records=left.take("includeControlRecords", _boolean, False),
            policy=policy,
            on_damage=on_damage,
        ),
        columns=columns,
        view=view,
        include_headers=headers,
        include_metadata=metadata,
        keep_replicas=left.take("replicas", _one_of("error", "keep"), "error") == "keep",
        split_bytes=left.take("splitBytes", _number, Options.split_bytes),
        batch_rows=left.take("batchRows", _number, Options.batch_rows),
        max_decompressed=left.take("maxDecompressedBytes", _number, None),
        engine=left.take("engine", _one_of(*ENGINES), Options.engine),
    )
    assert not left.values, left.values
    return options


def _refuse(values: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in KNOWN}
    refused = {name.lower(): name for name in REFUSED}
    for name in values:
        if name in known:
            continue
        if name in refused:
            raise OptionError(refused[name], f"not supported: {REFUSED[refused[name]]}")
        if name.startswith("kafka."):
            raise OptionError(name, f"not supported: {_NO_BROKER}")
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {known[near[0]]}? " if near else ""
        raise OptionError(name, f"there is no such option; {hint}known: {', '.join(KNOWN)}")


# ---------------------------------------------------------------- values


def _boolean(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise OptionError(name, f"true or false is expected, not {value!r}")
    return value.lower() == "true"


def _number(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", value, re.ASCII) or int(value) < 1:
        raise OptionError(name, f"a number from 1 on is expected, not {value!r}")
    return int(value)


def _one_of(*allowed: S) -> Callable[[str, str], S]:
    def read(name: str, value: str) -> S:
        for one in allowed:
            if one == value.lower():
                return one
        raise OptionError(name, f"one of {', '.join(allowed)} is expected, not {value!r}")

    return read


def _mode(name: str, value: str) -> tuple[OnDamage, Policy]:
    if value.upper() not in MODES:
        raise OptionError(name, f"one of {', '.join(MODES)} is expected, not {value!r}")
    return MODES[value.upper()]


def _policy(name: str, value: str) -> Policy:
    return Policy(_one_of(*Policy)(name, value))


def _check_policy(policy: Policy, on_damage: OnDamage) -> None:
    if policy is Policy.STRICT and on_damage != "raise":
        raise OptionError("policy", "strict stops at the first problem: the mode must be FAILFAST")
    if policy is Policy.SALVAGE and on_damage == "raise":
        raise OptionError(
            "policy", "salvage goes on after damage: the mode must be PERMISSIVE or DROPMALFORMED"
        )


def _data_loss(name: str, value: str) -> bool:
    if _boolean(name, value):
        raise OptionError(name, "a log directory cannot tell what was lost; only false can be had")
    return False


def _names(name: str, value: str) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in value.split(","))
    if not all(names):
        raise OptionError(name, f"names with commas between are expected, not {value!r}")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise OptionError(name, f"{', '.join(twice)} is named twice")
    return names


def _pattern(name: str, value: str) -> str | None:
    try:
        re.compile(value)
    except re.error as error:
        raise OptionError(name, f"{value!r} is no regular expression: {error}") from None
    return value


def _path(name: str, value: str) -> tuple[str, ...]:
    return (value,)


def _paths(name: str, value: str) -> tuple[str, ...]:
    paths = _json(name, value, '["/data/kafka-1", "/data/kafka-2"]')
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise OptionError(name, f"a JSON list of paths is expected, not {value!r}")
    return tuple(paths)


def _json(name: str, value: str, example: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise OptionError(name, f"a key stands there twice in {value!r}")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(name, f"JSON such as {example} is expected, not {value!r}") from None


def _assign(name: str, value: str) -> frozenset[tuple[str, int]] | None:
    example = '{"topicA":[0,1],"topicB":[0,1]}'
    wrong = OptionError(name, f"expected e.g. {example}, got {value!r}")
    found = _json(name, value, example)
    if not isinstance(found, dict) or not found:
        raise wrong
    out = set()
    for topic, partitions in found.items():
        if not isinstance(partitions, list):
            raise wrong
        for partition in partitions:
            if type(partition) is not int or partition < 0:
                raise wrong
            out.add((topic, partition))
    return frozenset(out)


def _starting(name: str, value: str) -> Offsets | None:
    if value.strip().lower() == "latest":
        raise OptionError(name, "a batch query cannot start at latest: nothing would be read")
    if value.strip().lower() == "earliest":
        return None
    return _offsets(name, value, LATEST, "latest (-1)")


def _ending(name: str, value: str) -> Offsets | None:
    if value.strip().lower() == "earliest":
        raise OptionError(name, "a batch query cannot end at earliest: nothing would be read")
    if value.strip().lower() == "latest":
        return None
    return _offsets(name, value, EARLIEST, "earliest (-2)")


def _offsets(name: str, value: str, never: int, spelled: str) -> Offsets:
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    wrong = OptionError(name, f"expected e.g. {example}, got {value!r}")
    found = _json(name, value, example)
    if not isinstance(found, dict):
        raise wrong
    out: dict[tuple[str, int], int] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise wrong
        for partition, offset in partitions.items():
            if not re.fullmatch(r"[0-9]{1,9}", partition, re.ASCII):
                raise wrong
            if type(offset) is not int or not EARLIEST <= offset < 1 << 63:
                raise wrong
            if offset == never:
                raise OptionError(
                    name, f"{spelled} is not possible here ({topic}, partition {partition})"
                )
            out[topic, int(partition)] = offset
    return out


def default_columns(options: Options) -> tuple[str, ...]:
    """The columns when the reader asks for no schema of its own."""
    if options.columns is not None:
        return options.columns
    if options.view is not None:
        from kafka_log.tables.topic_views import RECORD_COLUMNS, topic_view

        return topic_view(options.view, None).columns + (
            RECORD_COLUMNS if options.include_metadata else ()
        )
    names: tuple[str, ...] = KAFKA_COLUMNS
    if options.include_headers:
        names += ("headers",)
    if options.include_metadata:
        names += METADATA_COLUMNS
    return names


KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""The columns of Spark's own Kafka source."""
