"""``kafka-log dump``: Print records, one row per record, or batch headers, one row per batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kafka_log.cli.common import (
    COULD_NOT_RUN,
    FORMATS,
    GOOD,
    PROBLEMS,
    add_output,
    add_paths,
    add_reading,
    add_show_secrets,
    find_partitions,
    make_opener,
)
from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import number_type
from kafka_log.cli.schemas import add_schema_version, add_schemas
from kafka_log.cli.selection import RECORDS, add_selection, selection_of
from kafka_log.inspect.dump import INTERNAL, NONE, WIDTH
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import Batches

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition


HELP = "print records or batch headers"
EXAMPLES = """\
  kafka-log dump samples/kafka-4.x/codecs-0 --offsets 10:20
  kafka-log dump samples/kafka-4.x/codecs-0 --decode key=utf8,value=hex --columns offset,key,value
  kafka-log dump samples/schema-registry --topic clicks --decode auto --columns offset,value
  kafka-log dump samples/kafka-4.x --topic codecs --format jsonl
  kafka-log dump samples/kafka-4.x/codecs-0 --last 5
  kafka-log dump samples/kafka-4.x --topic transactions --where "producer_id > 0 and len(headers) = 1"
  kafka-log dump samples/kafka-4.x --topic codecs --grep '^kappa .*(eta|iota)$'
  kafka-log dump samples/kafka-4.x --topic 'c*s' --last 1 -n 5 --follow
  kafka-log dump samples/kafka-4.x/transactions-0 --batches
"""

LINES_PER_WRITE = 500
"""Lines per write: a write costs as much as encoding one line."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add paths, options that select records and say how to read, and the output options of
    ``kafka-log dump`` to its parser.
    """
    add_paths(command)
    selected = add_selection(command, *RECORDS)
    selected.add_argument(
        "--grep",
        metavar="PATTERN",
        help="only records in whose key or value this regular expression matches, as with grep -E (syntax of RE2); binary ones are"
        " searched as bytes (\\xff), decoded ones (--decode) also as JSON (default: all)",
    )
    selected.add_argument(
        "-i",
        "--ignore-case",
        action="store_true",
        help="upper and lower case are the same for --grep (default: they differ)",
    )
    selected.add_argument(
        "--where",
        metavar="EXPR",
        help="only records for which this expression of DuckDB is true, over the columns of a scan, such as \"decode(key) like 'a%%'"
        " and timestamp > '2026-11-20'\"; needs DuckDB (default: all)",
    )
    output = add_output(command, (*FORMATS, "vectors"))
    add_reading(command)
    output.add_argument(
        "-n",
        dest="rows",
        type=number_type("a number of records", 1),
        metavar="N",
        help="stop after N records of all partitions together (default: all)",
    )
    output.add_argument(
        "--last",
        type=number_type("a number of records"),
        metavar="N",
        help="only the last N selected records of each partition, without reading all of it (default: all)",
    )
    output.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="then print records as they are appended, as tail -f does, also those of new segments and partitions, until Ctrl-C;"
        " with --last N begin at the last N records, with --last 0 at the end (default: stop at the end)",
    )
    output.add_argument(
        "--batches",
        action="store_true",
        help="one row per batch, from its header (default: one per record); checksums are verified, nothing is decompressed",
    )
    output.add_argument(
        "--columns",
        metavar="NAME,...",
        help="columns to print (default: topic, partition, offset, timestamp, key, value, headers)",
    )
    output.add_argument(
        "--width",
        type=int,
        metavar="BYTES",
        help=f"maximum number of bytes to print of a key, value or header in text (default: {WIDTH}, or what fits the screen)",
    )
    output.add_argument(
        "--decode",
        default=INTERNAL,
        metavar="HOW",
        help="format of keys and values: auto, avro, json-schema or protobuf for those of a schema registry, utf8, json, int, hex, base64,"
        " confluent, or the name of an internal topic; one for both, or key=HOW,value=HOW. internal: decode records of internal topics"
        " alone, as auto does too; none: print bytes (default %(default)s)",
    )
    add_schemas(output)
    add_schema_version(output)
    add_show_secrets(output)
    output.add_argument(
        "--digest",
        action="store_true",
        help="with --format vectors: print a digest of the records of a batch instead of the records",
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the records of the selected logs (``--batches``: batch headers, ``--format vectors``:
    test vectors). Return 0, 1 for damage and unreadable files, or 2 after the message of a
    ValueError: an impossible option, column or filter, a missing topic or partition. Raise
    DirectoryError without logs or if two directories hold one partition, EngineError (for records
    ImportError) if ``--engine arrow`` is not installed.
    """
    try:
        if options.format == "vectors":
            _reject_filters(options)
            return _print_vectors(options, find_partitions(options))
        if options.digest:
            raise ValueError("--digest is for vectors: add --format vectors, or leave it out")
        if options.batches:
            _reject_record_options(options, "--batches")
            if options.decode != INTERNAL:
                raise ValueError("--decode is for records: it does not go with --batches")
            from kafka_log.inspect.dump.batches_command import dump_batches

            return dump_batches(options, find_partitions(options))
        from kafka_log.inspect.dump.records_command import dump_records

        return dump_records(options, find_partitions(options))
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN


def _reject_filters(options: argparse.Namespace) -> None:
    """Raise ValueError if the options have filters that do not go with vectors, which contain whole
    files. Only ``--topic``, ``--partition``, ``--include`` and ``--replicas`` do. Raise it also for
    ``-n``, ``--last``, ``--follow``, ``--grep``, ``--where``, ``--columns``, ``--batches``,
    ``--show-secrets``, and a ``--decode`` that is not ``internal``, ``none`` or an internal topic.
    """
    filters = selection_of(options).to_keywords().keys() - {
        "policy",
        "topics",
        "partitions",
        "include",
        "replicas",
    }
    _reject_record_options(options, "--format vectors")
    if filters or options.columns is not None or options.batches:
        raise ValueError(
            "--format vectors prints whole files: the only filters it takes are --topic, --partition, --include and --replicas"
        )
    if options.show_secrets:
        raise ValueError(
            "--show-secrets does not go with --format vectors, which prints the bytes of records and hides nothing"
        )
    known = (INTERNAL, NONE, *INTERNAL_TOPICS)
    if options.decode not in known:
        raise ValueError(
            f"--format vectors decodes only records of internal topics: its --decode is {', '.join(known[:-1])} or {known[-1]}, not {options.decode!r}"
        )


def _reject_record_options(options: argparse.Namespace, mode: str) -> None:
    """Raise ValueError if ``-n``, ``--last``, ``--follow``, ``--grep``, ``--where``, ``--schemas`` or
    ``--schema-version`` is given, which are about records and do not go with ``mode``.
    """
    if options.rows is not None or options.last is not None:
        raise ValueError(f"-n and --last count records: they do not go with {mode}")
    given = {
        "--follow": options.follow,
        "--grep": options.grep,
        "--where": options.where,
        "--schemas": options.schemas,
        "--schema-version": options.schema_version,
    }
    for name, value in given.items():
        if value:
            raise ValueError(f"{name} is for records: it does not go with {mode}")


def _print_vectors(options: argparse.Namespace, partitions: list[Partition]) -> int:
    """Print the objects of the reference vectors, one JSON object per line, for each segment.
    ``--decode`` is ``internal`` (the topic of the segment), ``none`` or an internal topic. Return 1 if a
    partition cannot be read, a batch has a problem or a wrong checksum, a control record cannot be
    decoded, or a file does not end normally; else 0. Raise EngineError if ``--engine arrow`` is not installed.
    """
    from kafka_log.inspect.dump import json_objects as json_dump
    from kafka_log.read.internal_topics import internal_topic

    worst = GOOD
    out = sys.stdout
    open_segment = make_opener(options, partitions, True)
    for partition in partitions:
        if partition.error is not None:
            out.write(json_dump.error_line(partition.error) + "\n")
            worst = PROBLEMS
        for segment in partition.segments:
            reader = _ProblemWatcher(open_segment(segment))
            decode = internal_topic(segment.topic if options.decode == INTERNAL else options.decode)
            lines = json_dump.json_lines(reader, records=not options.digest, decode=decode)
            while block := list(islice(lines, LINES_PER_WRITE)):
                out.write("\n".join(block) + "\n")
            worst = max(worst, PROBLEMS if reader.found_problems() else GOOD)
    out.flush()
    return worst


class _ProblemWatcher:
    """Reader that passes batches on and notes whether one has a problem."""

    def __init__(self, reader: Batches) -> None:
        self.reader = reader
        self.path = reader.path
        self.listed_size = reader.listed_size
        self.failed = False

    @property
    def end(self) -> End | None:
        """End of the wrapped reader; None until the file was read."""
        return self.reader.end

    def found_problems(self) -> bool:
        """Return whether a batch had a problem or an unreadable control record, or the end is not normal. Call it after the file was read."""
        end = self.reader.end
        return self.failed or end is None or not end.is_normal

    def __iter__(self) -> Iterator[Batch]:
        """Yield all batches, and note invalid ones, those with problems, and control records that cannot be decoded."""
        for batch in self.reader:
            self.failed |= bool(batch.problems) or not batch.is_valid
            if batch.is_control:
                self.failed |= any(r.control is not None and r.control.error for r in batch.records)
            yield batch
