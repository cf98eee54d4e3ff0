"""Verdict of a report: what is wrong, where, and what to do next, the most urgent first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.catalog import CATALOG, SEVERITIES
from kafka_log.inspect.check.text import describe_place
from kafka_log.inspect.report.contents import Contents, Row, merge_copies
from kafka_log.inspect.report.section import format_short_time
from kafka_log.inspect.transactions.hanging import LOST_MARKER

Level = Literal["error", "warning", "note"]

MAX_TRANSACTIONS = 50
"""Maximum number of open transactions that are described one by one."""


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """All findings of one kind and severity.

    Attributes:
        severity: Severity.
        code: Id of the kind.
        title: Name of the problem.
        rows: The findings.
    """

    severity: Level
    code: str
    title: str
    rows: Sequence[Row]

    @property
    def anchor(self) -> str:
        """Fragment of the page where the findings are listed."""
        return f"finding-{self.severity}-{self.code}"

    @property
    def loses_records(self) -> bool:
        """Whether a finding says how many records are lost or at risk."""
        return any(row["records"] for row in self.rows)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to act on.

    Attributes:
        level: Severity.
        title: What is wrong.
        where: Places.
        meaning: What it means.
        remedy: The next step.
        anchor: Fragment of the page with details.
        commands: Commands of the next step.
    """

    level: Level
    title: str
    where: str
    meaning: str
    remedy: str
    anchor: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Judgment about logs.

    Attributes:
        level: ``error``, ``warning`` or ``good``.
        headline: One sentence.
        problems: What to act on, the most urgent first; notes are left out, but for open transactions.
    """

    level: Literal["error", "warning", "good"]
    headline: str
    problems: tuple[Problem, ...]


def group_findings(findings: Sequence[Row]) -> list[FindingGroup]:
    """Return findings grouped by severity and kind: the most severe first, then kinds in the order of
    the catalog.
    """
    groups: dict[tuple[Level, str], list[Row]] = {}
    for row in findings:
        groups.setdefault((row["severity"], row["code"]), []).append(row)
    order = {code: i for i, code in enumerate(CATALOG)}
    return [
        FindingGroup(severity, code, CATALOG[code].title, groups[severity, code])
        for severity, code in sorted(
            groups, key=lambda key: (SEVERITIES.index(key[0]), order[key[1]])
        )
    ]


def judge(contents: Contents) -> Verdict:
    """Return the verdict about the contents of a report. Its problems are, in order: errors that
    lose records, hanging transactions, other errors, warnings, what could not be read, and other
    open transactions (of both kinds of transactions at most MAX_TRANSACTIONS). Its level is
    ``error`` or ``warning`` if some problem has it, else ``good``.
    """
    groups = group_findings(contents.findings)
    transactions = merge_copies(contents.open_transactions)
    hanging = [row for row in transactions if row["hanging"]]
    others = [row for row in transactions if not row["hanging"]]
    stable = find_stable_offsets(transactions)
    copies = contents.has_replicas
    of_findings = [(group, _describe_group(group, has_replicas=copies)) for group in groups]
    errors = [pair for pair in of_findings if pair[0].severity == "error"]
    problems = [problem for group, problem in errors if group.loses_records]
    problems += [describe_transaction(row, stable) for row in hanging[:MAX_TRANSACTIONS]]
    problems += [problem for group, problem in errors if not group.loses_records]
    problems += [problem for group, problem in of_findings if group.severity == "warning"]
    problems += list(_describe_unread(contents))
    problems += [describe_transaction(row, stable) for row in others[:MAX_TRANSACTIONS]]
    level: Literal["error", "warning", "good"] = "good"
    if any(problem.level == "error" for problem in problems):
        level = "error"
    elif any(problem.level == "warning" for problem in problems):
        level = "warning"
    return Verdict(level, _write_headline(contents, len(others)), tuple(problems))


def summarize_counts(contents: Contents) -> str:
    """Return the numbers of errors, warnings and notes, without those that are 0; ``no finding`` if
    all are.
    """
    return ", ".join(count_contents(contents).values()) or "no finding"


def count_contents(contents: Contents) -> dict[Level, str]:
    """Return :func:`count_levels` of ``contents``."""
    transactions = merge_copies(contents.open_transactions)
    return count_levels(contents.findings, transactions, unread=len(contents.unread))


def get_level(row: Mapping[str, Any]) -> Level:
    """Return the severity of a finding or an open transaction. A transaction that hangs is an error,
    another one a note.
    """
    if "severity" in row:
        level: Level = row["severity"]
        return level
    return "error" if row["hanging"] else "note"


def count_levels(
    findings: Sequence[Row], transactions: Sequence[Row], *, unread: int = 0
) -> dict[Level, str]:
    """Return the numbers of errors, warnings and notes as texts by severity, the most severe first,
    without those that are 0. Findings and open transactions count by :func:`get_level`, an
    unreadable place as a warning. The texts name transactions and unreadable places too.
    """
    counts = Counter(get_level(row) for row in (*findings, *transactions))
    counts["warning"] += unread
    hanging = sum(get_level(row) == "error" for row in transactions)
    named: dict[Level, tuple[int, str]] = {
        "error": (hanging, "hanging transaction"),
        "warning": (unread, "unreadable place"),
        "note": (len(transactions) - hanging, "open transaction"),
    }
    words: dict[Level, str] = {}
    for level, (among, name) in named.items():
        if counts[level]:
            more = f" ({count_noun(among, name, spec=',')})" if among else ""
            words[level] = count_noun(counts[level], level, spec=",") + more
    return words


def write_counts(words: Mapping[Level, str]) -> str | None:
    """Return the headline with the numbers of errors and warnings of :func:`count_levels`; None if
    there are neither.
    """
    serious = [text for level, text in words.items() if level != "note"]
    return f"{' and '.join(serious)} found" if serious else None


def find_stable_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the last stable offset by partition directory: the first offset of the earliest of the
    open transactions ``rows``. A transaction without a known first offset counts as 0.
    """
    found: dict[str, int] = {}
    for row in rows:
        first = 0 if row["first_offset"] is None else row["first_offset"]
        found[row["directory"]] = min(first, found.get(row["directory"], first))
    return found


def _write_headline(contents: Contents, open_transactions: int) -> str:
    """Return the headline: the numbers of errors and warnings, unreadable places among them, if a
    finding is one or a transaction hangs. Else say the first that applies: something could not be
    read, no batch was checked, transactions are open (``open_transactions`` is not 0), or nothing
    is wrong.
    """
    if (
        contents.unread
        and not contents.hanging
        and not any(row["severity"] != "note" for row in contents.findings)
    ):
        return "Something could not be read, so this report is incomplete"
    if found := write_counts(count_contents(contents)):
        return found
    if not contents.checked:
        return "There is no batch: nothing was checked but files beside segments"
    if open_transactions:
        return f"Nothing is wrong; {count_noun(open_transactions, 'open transaction', spec=',')} may hold back consumers"
    return "Nothing is wrong"


def _describe_group(group: FindingGroup, *, has_replicas: bool) -> Problem:
    """Return the problem for all findings of one kind, with place, meaning and remedy of the first.
    Its title names up to three partitions and the number of places; several findings add the sum of
    records at risk, if known. ``has_replicas`` (some partition has several copies) adds that each
    copy counts by itself.
    """
    first = group.rows[0]
    places = list(
        dict.fromkeys(
            f"{row['topic']}-{row['partition']}" for row in group.rows if row["topic"] is not None
        )
    )
    title = group.title if len(group.rows) == 1 else f"{group.title}: {len(group.rows):,} places"
    if places:
        more = (
            f" and {count_noun(len(places) - 3, 'other partition', spec=',')}"
            if len(places) > 3
            else ""
        )
        title += f" in {', '.join(places[:3])}{more}"
    where = describe_place(first)
    if len(group.rows) > 1:
        known = [row["records"] for row in group.rows if row["records"] is not None]
        where = f"First: {where}"
        if known:
            where += f". All together: at most {count_noun(sum(known), 'record', spec=',')} lost or at risk"
            where += ", in each copy by itself" if has_replicas else ""
    commands = suggest_commands(first)
    return Problem(
        group.severity, title, where, first["meaning"], first["remedy"], group.anchor, commands
    )


def suggest_commands(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ``kafka-log salvage`` command for an error whose remedy names it, if its file is a
    segment of a live partition directory; else ``()``.
    """
    said = f"{row['meaning']} {row['remedy']}"
    if row["severity"] != "error" or row["topic"] is None or "kafka-log salvage" not in said:
        return ()
    path = Path(row["file"])
    if path.suffix != ".log" or path.parent.name != f"{row['topic']}-{row['partition']}":
        return ()
    repair = " --repair" if "kafka-log salvage --repair" in said else ""
    return (f"kafka-log salvage {shlex.quote(str(path.parent))}{repair} --out salvaged",)


def describe_transaction(
    row: Mapping[str, Any],
    stable: Mapping[str, int],
) -> Problem:
    """Return the problem that an open transaction is. Its title says since when it is open, if its
    first record has a timestamp, and how many offsets are hidden. If it hangs, the problem is an error with the
    commands that save its records and end it; else it is a note. If damage may hide its marker, the
    note says so and warns against an abort. ``stable`` has the last stable
    offsets by directory. ``row`` is one of ``txn``, with the number of ``copies`` of the partition
    that have the transaction.
    """
    place = f"{row['topic']}-{row['partition']}"
    name = (
        "" if row["transactional_id"] is None else f", transactional id {row['transactional_id']}"
    )
    first = 0 if row["first_offset"] is None else row["first_offset"]
    others = ""
    if row["copies"] > 1:
        others = f" and {count_noun(row['copies'] - 1, 'other copy', 'other copies', spec=',')}"
    where = f"{row['directory']}{others}, from offset {first}, producer {row['producer_id']}{name}"
    hidden = count_noun(row["hides"] or 0, "offset", spec=",")
    extent = f"{hidden} hidden"
    if row["first_timestamp"] is not None:
        extent = f"since {format_short_time(row['first_timestamp'])} UTC, {extent}"
    meaning = f"Consumers with isolation.level=read_committed stop at offset {stable[row['directory']]}: they do not get the last {hidden} of the partition."
    if LOST_MARKER in row["reason"]:
        return Problem(
            "note",
            f"Transaction whose marker may be damaged in {place}, {extent}",
            where,
            f"In this log the transaction is open, but {LOST_MARKER}. {meaning}",
            "Follow the findings about damage of the partition first. Do not abort the transaction before that: it may have ended.",
            "transactions",
        )
    if not row["hanging"]:
        unknown = "It is not known to hang: " if row["hanging"] is False else ""
        reason = row["reason"] if unknown else f"{row['reason'][0].upper()}{row['reason'][1:]}"
        return Problem(
            "note",
            f"Open transaction in {place}, {extent}",
            where,
            f"{meaning} {unknown}{reason}.",
            "Find out whether its producer still runs. If the log is a copy, give the time of the copy with --now: a transaction that should have ended before then hangs.",
            "transactions",
        )
    topic = shlex.quote(row["topic"])
    return Problem(
        "error",
        f"Hanging transaction in {place}, {extent}",
        where,
        f"{meaning} Nobody will end it: {row['reason']}.",
        "Save its records and those after it, then end it in the running cluster. An abort is final.",
        "transactions",
        (
            f"kafka-log export {shlex.quote(row['directory'])} --offsets {first}: --out hidden",
            f"kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic {topic} --partition {row['partition']} --start-offset {first}",
        ),
    )


def _describe_unread(contents: Contents) -> Iterator[Problem]:
    """Yield one problem about everything that could not be read; nothing if all was read."""
    if contents.unread:
        count = count_noun(len(contents.unread), "place", spec=",")
        yield Problem(
            "warning",
            f"Unreadable: {count}",
            contents.unread[0] + ("" if len(contents.unread) == 1 else ", and others"),
            "Answers in this report leave out what is there, and may be incomplete.",
            "Follow the findings about these files, and make the report again.",
            "made",
        )
