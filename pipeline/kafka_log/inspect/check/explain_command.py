"""``kafka-log explain``: Explain a finding of check: what it means and what to do. Without an id, list all findings."""

from __future__ import annotations

import argparse
import difflib
import textwrap

from kafka_log.cli.common import COULD_NOT_RUN, GOOD, screen_width
from kafka_log.cli.messages import print_message
from kafka_log.inspect.check.catalog import CATALOG, FindingKind

HELP = "explain a finding of check, and what to do about it"
EXAMPLES = """\
  kafka-log explain
  kafka-log explain batch_checksum
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    command.add_argument(
        "id", nargs="?", metavar="ID", help="id of a finding (default: list all findings)"
    )


def run_command(options: argparse.Namespace) -> int:
    """Print the explanation of the finding ``options.id``, or one line for each kind of finding if
    it is None, and return 0. For an unknown id print similar ids to stderr and return 2.
    """
    if options.id is None:
        print(_format_list())
        return GOOD
    kind = CATALOG.get(options.id)
    if kind is None:
        similar = difflib.get_close_matches(options.id, CATALOG, 3)
        hint = f"did you mean {' or '.join(similar)}?" if similar else "kafka-log explain lists all"
        print_message(f"there is no finding {options.id!r}: {hint}")
        return COULD_NOT_RUN
    print(_format_kind(kind, screen_width()))
    return GOOD


def _format_list() -> str:
    """Return a line for each kind of finding, in the order of the catalog: id, severities and
    title, in aligned columns.
    """
    rows = [(kind.id, ", ".join(kind.severities), kind.title) for kind in CATALOG.values()]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(
        f"{name:{widths[0]}}  {severities:{widths[1]}}  {title}" for name, severities, title in rows
    )


def _format_kind(kind: FindingKind, width: int | None) -> str:
    """Return three paragraphs about a kind of finding: id with severities and title, explanation,
    remedy. Wrap them at ``width`` characters; None: one line each.
    """
    head = f"{kind.id} ({', '.join(kind.severities)}): {kind.title}"
    paragraphs = [head, kind.explanation, f"What to do: {kind.remedy}"]
    if width is not None:
        paragraphs = [textwrap.fill(text, width, break_on_hyphens=False) for text in paragraphs]
    return "\n\n".join(paragraphs)
