"""The command ``kafka-log``: what a person does with a log on a disk."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from codecgen.runtime.located_bytes import Limits
from kafka_log import json_dump, text_dump
from kafka_log.directory import DirectoryError, Partition, discover
from kafka_log.kernels import ENGINES, KERNEL_MIN_BYTES, KERNEL_MIN_BYTES_OF_HEADERS, use_kernels
from kafka_log.model import Batch, End, Policy
from kafka_log.own_topics import OWN_TOPICS, own_topic
from kafka_log.reader import Batches, SegmentReader
from kafka_log.summary import Summary, summarize

LINES = 500
"""Lines that are written at a time: each write costs as much as a line."""

GOOD, PROBLEMS, COULD_NOT_RUN = 0, 1, 2

EPILOG = """\
examples:
  kafka-log dump 00000000000000000000.log
  kafka-log dump /var/lib/kafka/orders-0 --output jsonl --policy salvage > orders.jsonl
  kafka-log dump /var/lib/kafka/__consumer_offsets-7
  kafka-log stat /var/lib/kafka
  kafka-log stat /var/lib/kafka/orders-0 --deep --output json

A path is a segment, a partition directory (topic-0), or a broker's log directory. Files are never changed.
exit codes: 0 good, 1 problems found, 2 could not run
"""


class EngineError(Exception):
    """The engine that was asked for is not there."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(
        prog="kafka-log",
        description="Read Kafka's log segments without a broker.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    dump = commands.add_parser(
        "dump",
        help="show every batch and record",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common(dump, "text", ["text", "jsonl"])
    dump.add_argument(
        "--digest", action="store_true", help="batches only, with digests of their records"
    )
    dump.add_argument(
        "--width",
        type=int,
        default=text_dump.MAX_SHOWN,
        metavar="BYTES",
        help="show at most this much of a key, value or header in text (default %(default)s)",
    )
    dump.add_argument(
        "--decode",
        choices=["auto", "none", *OWN_TOPICS],
        default="auto",
        metavar="TOPIC",
        help="show what the records of Kafka's own topics say, as of this topic; auto: by the name of the directory; none: as"
        f" bytes. Topics: {', '.join(OWN_TOPICS)} (default %(default)s)",
    )
    stat = commands.add_parser(
        "stat",
        help="sum up partitions: records, offsets, codecs, problems",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common(stat, "text", ["text", "json"])
    stat.add_argument(
        "--deep",
        action="store_true",
        help="decode every record too, not headers and checksums only",
    )
    return main_parser


def _common(command: argparse.ArgumentParser, output: str, outputs: list[str]) -> None:
    command.add_argument(
        "paths", nargs="+", metavar="PATH", help="segment, partition or log directory"
    )
    command.add_argument(
        "--policy",
        choices=[p.value for p in Policy],
        default=Policy.KAFKA.value,
        help="strict: only what the formats allow; kafka: what Apache Kafka's reader accepts; "
        "salvage: go on after damage and say what was lost (default %(default)s)",
    )
    command.add_argument("--output", choices=outputs, default=output, help="default %(default)s")
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="construct: the reference codecs; arrow: compiled kernels, which need numba, and the reference codecs for"
        " what these do not take; auto: arrow where it pays. The output is the same (default %(default)s)",
    )
    command.add_argument(
        "--max-decompressed",
        type=int,
        metavar="BYTES",
        help="the most that one compressed section may hold (default: what the schema says, 256 MiB)",
    )
    command.add_argument(
        "--max-elements",
        type=int,
        default=Limits().elements,
        metavar="N",
        help="the most records of one batch (default %(default)s)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code."""
    options = parser().parse_args(argv)
    if sys.stdout.encoding.lower() != "utf-8" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # keys and headers are any text
    try:
        partitions = discover(options.paths)
        return (
            _dump(options, partitions) if options.command == "dump" else _stat(options, partitions)
        )
    except BrokenPipeError:
        # The reader of our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except KeyboardInterrupt:
        return COULD_NOT_RUN
    except (DirectoryError, EngineError, OSError) as error:
        print(f"kafka-log: {error}", file=sys.stderr)
        return COULD_NOT_RUN


Open = Callable[[Path], Batches]


def _opener(options: argparse.Namespace, partitions: list[Partition], records: bool) -> Open:
    """What opens the segments, now that it is known how much there is to read."""
    limits = Limits(decompressed=options.max_decompressed, elements=options.max_elements)
    size = sum(segment.size for p in partitions for segment in p.segments)
    if not use_kernels(
        size, options.engine, KERNEL_MIN_BYTES if records else KERNEL_MIN_BYTES_OF_HEADERS
    ):
        return lambda path: SegmentReader(
            path, policy=options.policy, limits=limits, records=records
        )
    try:
        from kafka_log.block_reader import BlockReader
    except ImportError as error:
        raise EngineError(
            f"the engine arrow needs numpy and pyarrow, and is slow without numba ({error}): "
            'pip install "kafka-codecs[fast]"'
        ) from None
    return lambda path: BlockReader(
        path, policy=options.policy, limits=limits, engine=options.engine, records=records
    )


def _dump(options: argparse.Namespace, partitions: list[Partition]) -> int:
    worst = GOOD
    out = sys.stdout
    open_segment = _opener(options, partitions, True)
    for partition in partitions:
        for segment in partition.segments:
            watch = _Watch(open_segment(segment.path))
            named = segment.topic if options.decode == "auto" else options.decode
            decode = own_topic(named)
            if options.output == "jsonl":
                found = json_dump.lines(watch, records=not options.digest, decode=decode)
            else:
                found = text_dump.lines(
                    watch, data=not options.digest, width=options.width, decode=decode
                )
            while some := list(islice(found, LINES)):
                out.write("\n".join(some) + "\n")
            worst = max(worst, PROBLEMS if watch.found_problems() else GOOD)
    out.flush()
    return worst


class _Watch:
    """A reader that notices problems as they pass."""

    def __init__(self, reader: Batches) -> None:
        self.reader = reader
        self.path = reader.path
        self.failed = False

    @property
    def end(self) -> End | None:
        return self.reader.end

    def found_problems(self) -> bool:
        """Whether anything was wrong, now that the file has been read."""
        end = self.reader.end
        return self.failed or end is None or end.stop != "eof" or bool(end.lost)

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.reader:
            self.failed |= bool(batch.problems) or not batch.is_valid
            yield batch


def _stat(options: argparse.Namespace, partitions: list[Partition]) -> int:
    total = sum(segment.size for p in partitions for segment in p.segments)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("reading", total=total)
        summaries = summarize(
            partitions,
            _opener(options, partitions, options.deep),
            lambda n: progress.update(task, advance=n),
        )
    whole = Summary("total")
    for summary in summaries:
        whole.merge(summary)
    if options.output == "json":
        objects = [s.as_object() for s in summaries]
        print(
            json.dumps(
                {"partitions": objects, "total": whole.as_object()}, indent=2, ensure_ascii=False
            )
        )
    else:
        _print_summaries(summaries, whole)
    return PROBLEMS if whole.problems else GOOD


def _print_summaries(summaries: list[Summary], whole: Summary) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = [
        "partition",
        "segments",
        "bytes",
        "batches",
        "records",
        "offsets",
        "from",
        "to",
        "magic",
        "codecs",
    ]
    columns += ["producers", "control", "problems"]
    for name in columns:
        left = name in ("partition", "from", "to", "magic", "codecs")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    for s in [*summaries, *([whole] if len(summaries) != 1 else [])]:
        table.add_row(*_row(s))
    console = Console(width=None if sys.stdout.isatty() else 240, highlight=False, markup=False)
    console.print(table)
    for problem in whole.problems:
        console.print(f"!! {problem}", soft_wrap=True)


def _row(s: Summary) -> list[str]:
    offsets = "" if s.first_offset is None else f"{s.first_offset}..{s.last_offset}"
    magics = " ".join(f"v{m}" for m in sorted(s.magics))
    codecs = " ".join(f"{name}:{n}" for name, n in sorted(s.codecs.items()))
    numbers = [str(n) for n in (s.segments, s.size, s.batches, s.records)]
    ends = [_time(s.first_timestamp), _time(s.last_timestamp)]
    rest = [str(n) for n in (len(s.producers), s.control_batches, len(s.problems))]
    return [s.name, *numbers, offsets, *ends, magics, codecs, *rest]


def _time(timestamp: int | None) -> str:
    if timestamp is None:
        return ""
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(timestamp)


if __name__ == "__main__":
    sys.exit(main())
