"""Page of a report: a verdict, the main numbers, a table of contents, and the sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element

from rich import filesize

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.report.activity_sections import (
    build_batches,
    build_groups,
    build_traffic,
    build_transactions,
)
from kafka_log.inspect.report.contents import Contents, Row
from kafka_log.inspect.report.damage_sections import build_findings, build_maps
from kafka_log.inspect.report.html import Child, element, shorten, write_page
from kafka_log.inspect.report.log_sections import (
    build_cluster,
    build_epochs,
    build_made,
    build_partitions,
    build_retention,
)
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.section import (
    Section,
    format_minute,
    list_lines,
    make_badge,
    sum_column,
)
from kafka_log.inspect.report.verdict import (
    Problem,
    Verdict,
    count_contents,
    group_findings,
    judge,
)
from kafka_log.text.values import format_time

MAX_PROBLEMS = 8
"""Maximum number of problems in the verdict."""
MAX_WITHOUT_SUMMARY = 2
"""Maximum number of problems without a list of their titles above them."""

BUILDERS: Sequence[Callable[[Contents, Origin], Section]] = (
    build_findings,
    build_maps,
    build_transactions,
    build_groups,
    build_traffic,
    build_batches,
    build_partitions,
    build_retention,
    build_epochs,
    build_cluster,
    build_made,
)
"""Functions that build the sections, in the order of the page."""


def make_page(contents: Contents, origin: Origin) -> bytes:
    """Return the whole page of a report as UTF-8 bytes: heading, verdict, main numbers, contents,
    and the sections of :data:`BUILDERS` in order. ``origin`` has paths, options and times for
    heading and commands.
    """
    verdict = judge(contents)
    sections = [build(contents, origin) for build in BUILDERS]
    style = files("kafka_log.inspect.report").joinpath("style.css").read_text(encoding="utf-8")
    links = [element("li", element("a", s.heading, href=f"#{s.anchor}")) for s in sections]
    body = [
        element(
            "header",
            element("p", "kafka-log report", class_="kind"),
            element("h1", shorten(origin.title, 200)),
            element("p", *_describe_origin(origin), class_="origin"),
        ),
        element(
            "main",
            _make_verdict(verdict, contents, origin),
            _make_figures(contents),
            element("nav", element("h2", "Contents"), element("ol", *links), aria_label="Contents"),
            *(element("section", element("h2", s.heading), *s.body, id=s.anchor) for s in sections),
        ),
    ]
    return write_page(f"{verdict.headline} - {shorten(origin.title, 80)}", style, *body)


def _describe_origin(origin: Origin) -> list[Child]:
    """Return the line with the paths (three at most, then the number of the others) and the time
    when reading began, and ``--now`` if it was given, as one text. Leave out
    the paths if there is only one and it is the title.
    """
    read = f"read {format_time(origin.begun_ms)}"
    if origin.now_ms is not None:
        read += f", judged as of {format_time(origin.now_ms)} (--now)"
    if [origin.title] == list(origin.paths):
        return [read]
    paths = ", ".join(shorten(path, 200) for path in origin.paths[:3])
    more = f" and {len(origin.paths) - 3:,} more" if len(origin.paths) > 3 else ""
    return [f"{paths}{more}; {read}"]


def _make_verdict(verdict: Verdict, contents: Contents, origin: Origin) -> Element:
    """Return the first section of the page: headline, what was checked, the first MAX_PROBLEMS
    problems with their next steps, how many more there are, and the first three remarks. If it
    shows more than MAX_WITHOUT_SUMMARY problems, a list of links with the titles of the shown
    problems comes before them. What there is none of is left out.
    """
    what = (
        "records, batch headers and checksums" if contents.deep else "batch headers and checksums"
    )
    segments = sum(len(partition.segments) for partition in contents.partitions)
    damaged = sum_column(contents.stat, "invalid_batches")
    batches = count_noun(contents.checked, "batch", "batches", spec=",")
    if damaged:
        batches = f"{count_noun(contents.checked, 'valid batch', 'valid batches', spec=',')} and {damaged:,} with a wrong checksum, in all {contents.checked + damaged:,}"
    said = (
        f"Checked: {batches} in"
        f" {count_noun(segments, 'segment', spec=',')} ({what}), indexes, checkpoints and names."
    )
    notes = [group for group in group_findings(contents.findings) if group.severity == "note"]
    checked: list[Child] = [said]
    if words := count_contents(contents).get("note"):
        link = element("a", words, href=f"#{notes[0].anchor}" if notes else "#transactions")
        checked += [f" Besides, there {'is' if words.startswith('1 ') else 'are'} ", link, "."]
    listed = [
        make_problem(problem, f"#{problem.anchor}", f"problem-{i}")
        for i, problem in enumerate(verdict.problems[:MAX_PROBLEMS])
    ]
    left = len(verdict.problems) - len(listed)
    parts: list[Child] = [element("h2", verdict.headline), element("p", *checked)]
    if len(listed) > MAX_WITHOUT_SUMMARY:
        lines = [
            element(
                "li",
                make_badge(problem.level),
                " ",
                element("a", shorten(problem.title, 200), href=f"#problem-{i}"),
            )
            for i, problem in enumerate(verdict.problems[:MAX_PROBLEMS])
        ]
        parts.append(element("ol", *lines, class_="short"))
    if listed:
        lead = "What is wrong, where, and what to do next"
        if verdict.level == "good":
            lead = "What to look at"
        parts.append(element("h3", lead, class_="lead"))
        parts.append(element("ol", *listed, class_="problems"))
    if left > 0:
        parts.append(
            element(
                "p",
                f"And {count_noun(left, 'other problem', spec=',')}: see ",
                element("a", "Findings", href="#findings"),
                " and ",
                element("a", "Transactions", href="#transactions"),
                ".",
            )
        )
    if contents.remarks:
        parts.append(list_lines("Remarks", contents.remarks, origin, 3))
    return element("section", *parts, class_=f"verdict {verdict.level}", id="verdict")


def make_problem(problem: Problem, href: str, anchor: str | None = None) -> Element:
    """Return a problem as an item of a list: title (a link to ``href``), place, meaning, next step
    and commands. ``anchor`` is the id of the item; None for none.
    """
    commands = [
        element("pre", element("code", shorten(line)), class_="command")
        for line in problem.commands
    ]
    return element(
        "li",
        element(
            "h4",
            make_badge(problem.level),
            " ",
            element("a", shorten(problem.title), href=href),
        ),
        element("p", shorten(problem.where), class_="where"),
        element("p", shorten(problem.meaning)),
        element("p", element("strong", "Do next: "), shorten(problem.remedy, 1000)),
        *commands,
        class_=problem.level,
        id=anchor,
    )


def _find_oldest(stat: Sequence[Row]) -> tuple[str, str] | None:
    """Return the label and the time of the oldest record for the main numbers; None if no time is
    known. Partitions with the timestamp 0, which a producer set, are left out and counted: its date,
    the begin of 1970, says nothing about age.
    """
    firsts = [row["first_timestamp"] for row in stat if row["first_timestamp"] is not None]
    if not firsts:
        return None
    label = "oldest record (UTC)"
    known = [first for first in firsts if first]
    if not known:
        return label, "timestamp 0 (1970)"
    if without := len(firsts) - len(known):
        label += f", without {count_noun(without, 'partition', spec=',')} with timestamp 0"
    return label, format_minute(min(known))


def _make_figures(contents: Contents) -> Element:
    """Return a list of the main numbers: topics, partitions, copies (only if a partition has
    several), size, records, and the times of the oldest and newest record (left out if unknown).
    Sizes and records count every copy.
    """
    keys = {partition.key for partition in contents.partitions}
    size = sum(row["bytes"] for row in contents.stat)
    damaged = sum_column(contents.stat, "invalid_batches") > 0
    oldest = _find_oldest(contents.stat)
    lasts = [row["last_timestamp"] for row in contents.stat if row["last_timestamp"] is not None]
    figures = [
        ("topics", f"{len({topic for topic, _ in keys}):,}"),
        ("partitions", f"{len(keys):,}"),
        ("copies", f"{len(contents.partitions):,}" if contents.has_replicas else None),
        ("size", f"{filesize.decimal(size)}"),
        (
            "records, damaged ones too" if damaged else "records",
            f"{sum(row['records'] for row in contents.stat):,}",
        ),
        oldest or ("", None),
        ("newest record (UTC)", format_minute(max(lasts)) if lasts else None),
    ]
    items = [
        element("div", element("dt", name), element("dd", value))
        for name, value in figures
        if value is not None
    ]
    return element("dl", *items, class_="figures")
