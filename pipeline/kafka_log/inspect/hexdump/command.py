"""``kafka-log hexdump``: Print the bytes of a batch, an index, a snapshot or a checkpoint beside their fields. Damaged bytes are printed too."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.common import GOOD, PROBLEMS, add_output, screen_width
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.ranges import MAX_INT64, argument_type, number_type, parse_byte_position
from kafka_log.segment.paths import make_path

if TYPE_CHECKING:
    from kafka_log.inspect.hexdump.segment_bytes import Part

HELP = "print the bytes of a file beside their fields, also damaged ones"
EXAMPLES = """\
  kafka-log hexdump samples/kafka-4.x/codecs-0 --offset 12
  kafka-log hexdump samples/kafka-4.x/codecs-0/00000000000000000000.log --byte 0 --batches 2
  kafka-log hexdump samples/kafka-4.x/codecs-0/00000000000000000000.timeindex --format csv
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add FILE, ``--byte`` or ``--offset``, ``--batches``, ``--records``, ``--as`` and ``--format``
    to the parser of ``kafka-log hexdump``.
    """
    command.add_argument(
        "path",
        metavar="FILE",
        help="segment, index, snapshot or checkpoint; with --offset also a partition directory",
    )
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--byte",
        type=argument_type(parse_byte_position),
        metavar="BYTE",
        help="batch or entry that contains this byte of the file, such as 500 or 0x1f4 (default: the first)",
    )
    place.add_argument(
        "--offset",
        type=number_type("an offset", -MAX_INT64, MAX_INT64),
        metavar="OFFSET",
        help="batch that contains this offset, from its record on (default: the first batch)",
    )
    command.add_argument(
        "--batches",
        type=number_type("a number of batches"),
        default=1,
        metavar="N",
        help="number of batches to print (default %(default)s)",
    )
    command.add_argument(
        "--records",
        type=number_type("a number of records"),
        default=10,
        metavar="N",
        help="maximum number of records of a batch, or entries of a file, to print (default %(default)s)",
    )
    command.add_argument(
        "--as",
        dest="kind",
        metavar="NAME",
        help="file name that tells the format of FILE, such as leader-epoch-checkpoint (default: the name of FILE)",
    )
    add_output(command)


def run_command(options: argparse.Namespace) -> int:
    """Print the bytes of a file with their fields. Return 1 if a printed part is damaged (its
    checksum is wrong, or bytes cannot be parsed), else 0. Raise NoSuchPlace (a NotFoundError) if
    the file does not exist, is of an unknown kind, has no such byte or offset, or does not take
    ``--byte`` or ``--offset``; also for a directory without ``--offset`` or of several partitions.
    Raise DirectoryError for a directory without logs; OSError if the file cannot be read.
    """
    if options.format != "text":
        return _print_table(options)
    from kafka_log.inspect.hexdump.text import format_part

    worst = GOOD
    for i, part in enumerate(_read_parts(options)):
        if i:
            print()
        for line in format_part(part, screen_width()):
            print(line)
        worst = max(worst, PROBLEMS if part.damage else GOOD)
    return worst


def _print_table(options: argparse.Namespace) -> int:
    """Write the pieces as a table in ``--format`` to stdout, then notes and damage to stderr.
    Return 1 if a part is damaged, else 0. Raise NoSuchPlace, DirectoryError or OSError in the cases
    of :func:`run_command`, before anything is written.
    """
    from kafka_log.inspect.hexdump.table import hexdump_table
    from kafka_log.text.output import write_table

    parts = list(_read_parts(options))
    out = binary_stdout()
    write_table(hexdump_table(parts), options.format, out)
    out.flush()
    for part in parts:
        for line in (*part.notes, *part.damage):
            print_message(line)
    return PROBLEMS if any(part.damage for part in parts) else GOOD


def _find_segment(directory: Path, offset: int | None) -> Path:
    """Return the segment of a partition directory with a batch that spans ``offset`` by its header;
    if there is none, the one that should have it by its name. Raise NoSuchPlace if ``offset`` is
    None, the directory has not exactly one partition, or every segment begins later; DirectoryError
    if it holds no log; OSError if a segment cannot be read.
    """
    from kafka_log.inspect.hexdump.segment_bytes import NoSuchPlace, holds_offset
    from kafka_log.logs.discovery import discover
    from kafka_log.logs.offset_ranges import within_offsets

    if offset is None:
        raise NoSuchPlace(
            f"{directory} is a directory: name a file in it, or add --offset to find the segment of a partition directory"
        )
    partitions = discover(directory)
    if len(partitions) != 1:
        raise NoSuchPlace(
            f"{directory} has {len(partitions)} partitions: name the directory of one partition, or a file"
        )
    named = [s for s in partitions[0].segments if s.has_canonical_name]
    found = within_offsets(named, (offset, offset + 1))
    if not found:
        least = min((s.base_offset for s in named), default=None)
        first = "" if least is None else f": the first one begins at offset {least}"
        raise NoSuchPlace(
            f"{directory} has no segment that begins at or before offset {offset}{first}"
        )
    found.sort(key=lambda s: (s.base_offset > offset, -s.base_offset))
    return next((s.path for s in found if holds_offset(s.path, offset)), found[0].path)


def _read_parts(options: argparse.Namespace) -> Iterator[Part]:
    """Yield the batches and damaged ranges of a segment as the options select, or one part for
    another file; damage does not raise. For the directory of a partition, read the segment that has
    ``--offset``. Raise NoSuchPlace if the file does not exist, is of an unknown kind, has no such
    byte or offset, or is no segment although ``--offset`` is given, and for a directory without
    ``--offset`` or of several partitions; DirectoryError for one without logs; OSError if the file
    cannot be read.
    """
    from kafka_log.inspect.hexdump.other_files import SEGMENTS, file_kind, hexdump_file
    from kafka_log.inspect.hexdump.segment_bytes import NoSuchPlace, hexdump_batches

    path = make_path(options.path)
    if path.is_dir():
        path = _find_segment(path, options.offset)
    if not path.exists():
        raise NoSuchPlace(f"{path}: there is no such file or directory")
    kind = file_kind(path if options.kind is None else Path(options.kind))
    if kind in SEGMENTS:
        yield from hexdump_batches(
            path,
            at=options.byte,
            offset=options.offset,
            count=options.batches,
            records=options.records,
        )
        return
    if options.offset is not None:
        raise NoSuchPlace(
            f"--offset applies to segments only, and {path} is not a segment: use --byte or leave it out"
        )
    yield hexdump_file(path, kind, options.byte, options.records, Limits())
