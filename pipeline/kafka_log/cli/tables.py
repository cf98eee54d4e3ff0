"""Options and output of commands whose answer is a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_log.cli.common import (
    GOOD,
    Group,
    add_output,
    add_paths,
    progress_of,
    screen_width,
    warn_of_skipped_paths,
    warn_of_skipped_segments,
)
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import PLACES, add_selection, warn_of_no_match
from kafka_log.logs.replicas import find_duplicate

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.log_directory import LogDirectory


def add_table_arguments(
    command: argparse.ArgumentParser,
    selection_options: Sequence[str] = PLACES,
    help_texts: Mapping[str, str] | None = None,
    *,
    types: Mapping[str, Callable[[str], Any]] | None = None,
    paths: bool = True,
) -> Group:
    """Add the argument PATH (unless ``paths`` is False), the options ``selection_options``, and
    ``--format``. ``help_texts`` has other help texts and ``types`` other parsers for some. Return the group of ``--format``,
    for further options of the output. Raise KeyError for an unknown option.

    Args:
        command: Parser of the command.
        selection_options: Names of options of :func:`kafka_log.cli.selection.add_selection`.
        help_texts: Other help texts by option name.
        types: Other parsers of values by option name.
        paths: Add the positional argument PATH.
    """
    if paths:
        add_paths(command)
    add_selection(command, *selection_options, help_texts=help_texts, types=types)
    return add_output(command)


def add_wide(output: Group) -> None:
    """Add the option ``--wide``."""
    output.add_argument(
        "--wide", action="store_true", help="all columns in text output (default: the main columns)"
    )


_WRITING = ("cut", "convert", "reindex")
_IGNORING_SNAPSHOTS = (*_WRITING, "check", "diff", "salvage")
"""Commands that never treat metadata snapshots as part of the log. ``salvage`` copies them and reports that in rows; ``check`` checks them
separately."""


def warn_of_excluded_segments(options: argparse.Namespace, log: LogDirectory) -> None:
    """Print lines to stderr about the segments that the command skips, by their states; nothing if
    there are none. For ``check`` and for commands that write or compare logs, metadata snapshots
    are not counted; instead each directory with snapshots has a line, except for ``check`` and
    ``salvage``, which do not skip them. Raise DirectoryError or NotFoundError if no log matches.
    """
    if options.command not in _IGNORING_SNAPSHOTS:
        warn_of_skipped_segments(log.excluded_segments)
        return
    warn_of_skipped_segments(
        [segment for segment in log.excluded_segments if segment.state != "snapshot"]
    )
    if options.command in ("check", "salvage"):
        return
    read = (segment for partition in log.all_partitions for segment in partition.segments)
    paths = {s.path.parent for s in (*log.excluded_segments, *read) if s.state == "snapshot"}
    for path in sorted(paths):
        is_writing = options.command in _WRITING
        why = (
            f"{options.command} does not write metadata snapshots; salvage copies them"
            if is_writing
            else "diff does not compare metadata snapshots"
        )
        print_message(f"metadata snapshots in {path} were skipped: {why}")


def show(
    options: argparse.Namespace,
    answer: Callable[[LogDirectory], pa.Table],
    empty: str | Callable[[LogDirectory], str],
    text: Callable[[pa.Table, int | None], str] | None = None,
    *,
    has_bar: bool = False,
    filtered: Sequence[str] | None = (),
    damage: Sequence[str] = (),
) -> int:
    """Print the table that ``answer`` computes, and return exit code 0. As text, ``text`` renders
    it, or ``empty`` replaces it if it has no rows. A progress bar is shown unless ``has_bar``: then
    ``answer`` shows its own. Skipped segments and paths are named on stderr; without rows also the
    given filters and the flags ``filtered`` (None: neither), unless there is ``damage``. Raise what ``answer`` raises;
    DirectoryError without logs; NotFoundError for a missing topic or partition.

    Args:
        options: Arguments of the command: paths, selection and ``--format``.
        answer: Computes the table from the selected logs.
        empty: Text to print for a table without rows, or a function that returns it.
        text: Returns the text of a table for a width. None: print columns.
        has_bar: Whether ``answer`` shows a progress bar itself.
        filtered: Further flags to name if no row matches; None: print no message about filters.
        damage: Lines about damage, to which ``answer`` adds: rows that match may be in what was not read.
    """
    from kafka_log.log_directory import LogDirectory
    from kafka_log.text.output import write_table

    directory = LogDirectory(
        options.paths,
        topics=getattr(options, "topic", None),
        partitions=getattr(options, "partition", None),
        include=getattr(options, "include", ()),
        replicas=getattr(options, "replicas", None),
    )
    if hasattr(options, "include"):
        warn_of_excluded_segments(options, directory)
    if options.paths:
        warn_of_skipped_paths(directory.skipped_paths)
    with progress_of("reading", None, shown=not has_bar):
        table = answer(directory)
    if not table.num_rows and filtered is not None and not damage:
        warn_of_no_match(options, *filtered)
    if options.format == "text" and not table.num_rows:
        print(empty if isinstance(empty, str) else empty(directory))
        return GOOD
    out = binary_stdout()
    if options.format == "text" and text is not None:
        made = text(table, screen_width())
        out.write(made.encode("utf-8", "backslashreplace"))
        out.flush()
        return GOOD
    write_table(table, options.format, out, screen_width())
    out.flush()
    return GOOD


def with_directory(log: LogDirectory, names: Sequence[str]) -> list[str]:
    """Return the columns to print as text: ``names``, and ``directory`` if several directories hold one partition."""
    return [*names, "directory"] if find_duplicate(log.all_partitions) is not None else list(names)


def size_of(log: LogDirectory) -> int:
    """Return the total size in bytes of the selected segments."""
    return sum(partition.size for partition in log.all_partitions)
