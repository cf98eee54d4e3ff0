"""Pages about all logs, a topic and a partition."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from rich import filesize

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.browse.batch_windows import read_index_times
from kafka_log.inspect.browse.document import (
    Page,
    Query,
    make_facts,
    make_form,
    make_go_to,
    make_link,
    make_links,
    make_notice,
    make_url,
)
from kafka_log.inspect.browse.listing import Listing, make_id, segment_id
from kafka_log.inspect.browse.problems import (
    MAX_BYTES,
    MAX_SEGMENTS,
    Problems,
    find_problems,
    glance_at,
)
from kafka_log.inspect.check.catalog import CATALOG, SEVERITIES
from kafka_log.inspect.check.text import describe_place
from kafka_log.inspect.listing import partition_table, segment_table, topic_table
from kafka_log.inspect.report.contents import merge_copies
from kafka_log.inspect.report.html import Child, element, make_table, shorten
from kafka_log.inspect.report.page import make_problem
from kafka_log.inspect.report.section import (
    format_counts,
    format_number,
    format_reason,
    format_short_time,
    make_badge,
)
from kafka_log.inspect.report.verdict import (
    Problem,
    count_levels,
    describe_transaction,
    find_stable_offsets,
    get_level,
    suggest_commands,
    write_counts,
)
from kafka_log.logs.index_files import read_last_index_entry
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition, describe_skipped
from kafka_log.logs.replicas import read_log_end
from kafka_log.segment.arrow_text import utf8
from kafka_log.text.json_values import to_rows

MAX_ROWS = 100
"""Maximum number of rows of a table."""
MAX_PROBLEMS = 50
MAX_TITLES = 12
"""Maximum number of problems of a page, and of the first page."""
MAX_DIRECTORIES = 10


def name_partition(partition: Partition) -> str:
    """Return topic and number of a partition, with its state if it is not live."""
    state = "" if partition.state == "live" else f" ({partition.state})"
    return f"{utf8(partition.topic)}-{partition.partition}{state}"


def show_overview(listing: Listing, query: Query, now: int | None) -> Page:
    """Return the first page: problems, log directories, and topics with their sizes, MAX_ROWS a
    page (``page``), in whose name ``name`` occurs in any case. Up to MAX_SEGMENTS partitions are
    checked as by :func:`find_problems`; if there are more, only both ends of the largest are read.
    If directories hold copies of a partition, a column counts them, and sizes are those of all. Raise ParameterError for an impossible number; OSError if a transaction marker cannot be read,
    or a log directory may not be searched.
    """
    partitions = list(listing.partitions.values())
    problems = glance_at(partitions)
    if len(partitions) <= MAX_SEGMENTS:
        problems = find_problems(partitions, listing.found, now=now, with_directories=True)
    numbers = {partition.key for partition in partitions}
    has_replicas = len(numbers) != len(partitions)
    wanted = query.text("name")
    table = [
        row
        for row in to_rows(topic_table(partitions))
        if wanted.casefold() in row["topic"].casefold()
    ]
    counts = _count_by(problems, "topic")
    ids = {utf8(of_topic[0][1].topic): key for key, of_topic in listing.topics.items()}
    shown, pager = _slice_rows(table, query, ("",), name=wanted or None)
    rows = [
        (
            make_link(shorten(row["topic"], 200), make_url("topics", ids[row["topic"]])),
            format_counts(counts[row["topic"]]),
            f"{row['partitions']:,}",
            *([f"{row['replicas']:,}"] if has_replicas else []),
            f"{row['segments']:,}",
            filesize.decimal(row["bytes"]),
            f"{row['bytes']:,}",
            row["state"],
        )
        for row in shown
    ]
    headings = ["topic", "problems", "partitions", *(["replicas"] if has_replicas else []), "segments", "size", "bytes", "state"]  # fmt: skip
    skipped = listing.found.skipped_paths
    body: list[Child] = [
        _make_verdict(problems, listing, len(partitions), is_short=True),
        make_links(
            ("Transactions", make_url("transactions")), ("Consumer groups", make_url("groups"))
        ),
        element("h2", f"Topics ({len(listing.topics):,})", class_="lead"),
        make_form("/", "name", "Name contains", "Filter", wanted),
        make_table(headings, rows, kinds=f"w{'n' * (len(headings) - 2)}k", caption="Topics")
        if rows
        else element("p", "No topic has such a name."),
        pager,
        element("h2", "Log directories", class_="lead"),
        _list_directories(listing),
        element("p", shorten(describe_skipped(skipped)), class_="more") if skipped else None,
    ]
    total = sum(partition.size for partition in partitions)
    replicas = f" ({len(partitions):,} replicas)" if has_replicas else ""
    title = f"{count_noun(len(listing.topics), 'topic', spec=',')}, {count_noun(len(numbers), 'partition', spec=',')}{replicas}, {filesize.decimal(total)}"
    return Page(title, body)


def show_problems(listing: Listing, query: Query, now: int | None) -> Page:
    """Return the page of problems of partitions from the index ``from`` on, as many as one page may
    look at; of none if it is not below their number. Raise ParameterError for an impossible number;
    OSError if a transaction marker cannot be read, or a log directory may not be searched.
    """
    partitions = list(listing.partitions.values())
    begin = min(query.count("from"), len(partitions))
    problems = find_problems(partitions, listing.found, begin, now=now, with_directories=begin == 0)
    verdict = _make_verdict(problems, listing, len(partitions), begin)
    return Page("Problems", [verdict], [("Problems", make_url("problems"))])


def show_topic(listing: Listing, query: Query, topic_id: str, now: int | None) -> Page:
    """Return the page of a topic: its partitions with problems and sizes, also copies in several
    directories, MAX_ROWS a page (``page``). Raise UnknownIdError if there is no such topic,
    ParameterError for an impossible number, OSError if a transaction marker cannot be read, or a
    log directory may not be searched.
    """
    of_topic = listing.get_topic(topic_id)
    shown, pager = _slice_rows(of_topic, query, ("topics", topic_id))
    topic = of_topic[0][1].topic
    problems = find_problems(
        [partition for _, partition in shown],
        listing.found,
        now=now,
        with_directories=True,
        selects=lambda key: key[0] == topic,
    )
    rows = [
        (
            make_link(f"{row['partition']}", make_url("partitions", key)),
            _count_problems(problems, partition),
            f"{row['segments']:,}",
            filesize.decimal(row["bytes"]),
            f"{row['bytes']:,}",
            format_number(row["base_offset"]),
            row["state"],
            shorten(row["directory"], 300),
            make_badge("error") if partition.error is not None else "",
        )
        for key, partition in shown
        for row in to_rows(partition_table([partition]))
    ]
    headings = [
        *("partition", "problems", "segments", "size", "bytes", "first offset", "state"),
        *("directory", ""),
    ]
    name = utf8(topic)
    table = make_table(headings, rows, kinds="knnnnnkwk", caption="Partitions")
    return Page(name, [table, pager], [(name, make_url("topics", topic_id))])


def show_partition(listing: Listing, query: Query, partition_id: str, now: int | None) -> Page:
    """Return the page of a partition: its offsets, problems and segments (MAX_ROWS a page), and
    forms that lead into it. The next offset is left out if it is unknown, or to find it would take
    long. Raise UnknownIdError if there is no such partition, ParameterError for an impossible
    number, OSError if a transaction marker cannot be read, or a log directory may not be searched.
    """
    partition = listing.get_partition(partition_id)
    problems = find_problems([partition], listing.found, now=now, with_directories=False)
    start = LogStarts().get(partition)
    end = find_log_end(partition)
    batches = ("partitions", partition_id, "batches")
    exact = f" ({partition.size:,} bytes)" if partition.size >= 1000 else ""
    facts: list[tuple[str, Child]] = [
        ("directory", utf8(os.fspath(partition.directory))),
        ("size", f"{filesize.decimal(partition.size)}{exact}"),
        (
            "log start offset",
            None if start is None else f"{start:,}: records before it were deleted",
        ),
        ("next offset", None if end is None else f"{end:,}"),
    ]
    shown, pager = _slice_rows(partition.segments, query, ("partitions", partition_id))
    rows = []
    for segment, row in zip(
        shown, to_rows(segment_table([_with_segments(partition, shown)])), strict=True
    ):
        times = read_index_times(segment)
        href = make_url(*batches, segment=segment_id(segment))
        rows.append(
            (
                make_link(segment.path.name, href),
                format_number(row["base_offset"]),
                format_number(row["bytes"]),
                "" if times is None else format_short_time(times[0]),
                "" if times is None else format_short_time(times[1]),
                format_short_time(row["modified"]),
                row["state"],
                segment.problem or "",
            )
        )
    headings = [
        "segment",
        "base offset",
        "bytes",
        "oldest by index (UTC)",
        "newest by index (UTC)",
        "modified (UTC)",
        "state",
        "",
    ]
    body: list[Child] = [
        make_facts(facts),
        element("p", str(partition.error), class_="where") if partition.error else None,
        _make_verdict(problems, listing, 1),
        make_links(
            ("First batches", make_url(*batches)), ("Last batches", make_url(*batches, end=1))
        ),
        make_go_to(partition_id, query),
        element("h2", f"Segments ({len(partition.segments):,})", class_="lead"),
        make_table(headings, rows, kinds="knnkkkkw", caption="Segments", has_cards=True),
        pager,
    ]
    return Page(name_partition(partition), body, path_to(partition, partition_id))


def find_log_end(partition: Partition) -> int | None:
    """Return the next offset of a log; None if it is not known, or would take long to find."""
    if not partition.segments:
        return None
    last = partition.segments[-1]
    is_near = last.size <= MAX_BYTES or read_last_index_entry(last) is not None
    end = read_log_end(partition.segments) if is_near else None
    return None if end is None else end.offset


def make_refusal(listing: Listing, query: Query, partition_id: str, message: str) -> Page:
    """Return the page about an impossible parameter of a page about a partition, with its forms as
    they were filled in. Raise UnknownIdError if there is no such partition.
    """
    partition = listing.get_partition(partition_id)
    notice = make_notice("error", "No such place", element("p", message))
    body = [notice, make_go_to(partition_id, query)]
    return Page(name_partition(partition), body, path_to(partition, partition_id), 400)


def path_to(partition: Partition, partition_id: str) -> list[tuple[str, str]]:
    """Return the links from a topic to a partition."""
    return [
        (utf8(partition.topic), make_url("topics", make_id(partition.topic))),
        (name_partition(partition), make_url("partitions", partition_id)),
    ]


def _with_segments(partition: Partition, segments: Sequence[Any]) -> Partition:
    """Return a partition with some of its segments."""
    return replace(partition, segments=tuple(segments))


def _slice_rows(
    rows: Sequence[Any], query: Query, steps: Sequence[str], **parameters: str | int | None
) -> tuple[Sequence[Any], Element | None]:
    """Return the rows of the page ``page`` (0 is the first, and the default; the last one if it is
    too large), MAX_ROWS at most, and links, with ``steps`` and ``parameters``, to the pages before
    and after it; None in their place if there is one page. Raise ParameterError if ``page`` is no
    integer, or negative.
    """
    page = min(query.count("page"), max(len(rows) - 1, 0) // MAX_ROWS)
    last = max(len(rows) - 1, 0) // MAX_ROWS
    links = make_links(
        ("← Previous", make_url(*steps, page=page - 1, **parameters) if page else None),
        ("Next →", make_url(*steps, page=page + 1, **parameters) if page < last else None),
    )
    if links is not None:
        links.append(element("span", f"Page {page + 1:,} of {last + 1:,}"))
    return rows[page * MAX_ROWS : (page + 1) * MAX_ROWS], links


def _count_by(problems: Problems, column: str) -> Mapping[str, Counter[str]]:
    """Return the numbers of errors, warnings and notes, open transactions among them, by a column."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in (*problems.findings, *problems.transactions):
        counts[row[column]][get_level(row)] += 1
    return counts


def _count_problems(problems: Problems, partition: Partition) -> Child:
    """Return the badges with the numbers of errors, warnings and notes, open transactions among
    them, in the directory of a partition; "?" if it was not looked at.
    """
    if partition not in (*problems.checked, *problems.glanced):
        return "?"
    directory = utf8(os.fspath(partition.directory))
    places = [(row, row["file"]) for row in problems.findings]
    places += [(row, row["directory"]) for row in problems.transactions]
    counts: Counter[str] = Counter(
        get_level(row)
        for row, path in places
        if path == directory or path.startswith(directory + os.sep)
    )
    return format_counts(counts)


def _list_directories(listing: Listing) -> Element:
    """Return a table of the log directories by path, at most MAX_DIRECTORIES, each with the number
    and the size of its selected partitions.
    """
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for partition in listing.partitions.values():
        parent = utf8(os.fspath(partition.directory.parent))
        sizes[parent] += partition.size
        counts[parent] += 1
    rows = [
        (shorten(path, 300), f"{counts[path]:,}", filesize.decimal(sizes[path]))
        for path in sorted(counts)[:MAX_DIRECTORIES]
    ]
    return make_table(["directory", "partitions", "size"], rows, kinds=".nn", caption="Directories")


def _make_verdict(
    problems: Problems, listing: Listing, total: int, begin: int = 0, *, is_short: bool = False
) -> Element:
    """Return the box that says what was checked and what is wrong, each problem with a link to its
    place. ``total`` is the number of all partitions, ``begin`` the index of the first one that was
    looked at. With ``is_short`` problems are titles alone, with a link to the page that explains
    them.
    """
    words = count_levels(problems.findings, merge_copies(problems.transactions))
    checked, glanced = len(problems.checked), len(problems.glanced)
    said = ""
    if checked:
        said = f"Checked: batch headers, checksums and indexes of {count_noun(checked, 'partition', spec=',')} of {total:,}"
        said += f", from number {begin + 1:,} on. " if begin else ". "
    if glanced:
        large = count_noun(glanced, "large partition", spec=",")
        said += f"Only batch headers at both ends were read of {large} of {total:,}: kafka-log check reads all."
    headline = "Nothing is wrong in what was checked"
    if problems.lines:
        headline = "Something could not be read, or is unclear"
    headline = write_counts(words) or headline
    level = "warning" if "warning" in words or problems.lines else "good"
    level = "error" if "error" in words else level
    if note := words.get("note"):
        said += f" Besides, there {'is' if note.startswith('1 ') else 'are'} {note}."
    found = _list_problems(problems, _find_places(problems, listing), is_short=is_short)
    body: list[Child] = [element("p", said)]
    if found and is_short:
        lines = [
            element("li", make_badge(one.level), " ", make_link(shorten(one.title, 200), href))
            for one, href in found[:MAX_TITLES]
        ]
        body.append(element("ol", *lines, class_="short"))
        what = f"All {len(found):,}, what each means, and what to do next →"
        body.append(element("p", make_link(what, make_url("problems")), class_="next"))
    elif found:
        # Several findings may be about one place: the first has the fragment.
        anchors = {href: i for i, (_, href) in reversed(list(enumerate(found)))}
        items = [
            make_problem(one, href, make_problem_anchor(href) if anchors[href] == i else None)
            for i, (one, href) in enumerate(found[:MAX_PROBLEMS])
        ]
        body.append(element("ol", *items, class_="problems"))
        if more := len(found) - len(items):
            body.append(element("p", f"And {more:,} more: each partition has a page with its own."))
    if problems.lines:
        lines = [element("li", format_reason(line, 400)) for line in problems.lines[:20]]
        body.append(
            element(
                "div", element("h3", "Not read, or unclear"), element("ul", *lines), class_="lines"
            )
        )
    if problems.following is not None:
        href = make_url("problems", **{"from": problems.following})
        what = (
            "Check the next partitions →" if checked else "Check the partitions, some at a time →"
        )
        body.append(element("p", make_link(what, href), class_="next"))
    return make_notice(level, headline, *body)


Places = Mapping[str, tuple[str, str | None]]
"""Id of the partition, and id of the segment or None, by path of a segment or a partition directory."""


def _find_places(problems: Problems, listing: Listing) -> Places:
    """Return the places of the directories and segments of partitions that were looked at, by path:
    id of the partition, and id of the segment (None for a directory).
    """
    found: dict[str, tuple[str, str | None]] = {}
    looked_at = {id(partition) for partition in (*problems.checked, *problems.glanced)}
    for key, partition in listing.partitions.items():
        if id(partition) in looked_at:
            found[utf8(os.fspath(partition.directory))] = key, None
            for segment in partition.segments:
                found[utf8(os.fspath(segment.path))] = key, segment_id(segment)
    return found


def make_problem_anchor(href: str) -> str:
    """Return the fragment of the problem that leads to ``href``."""
    return f"problem-{make_id(href)}"


def _list_problems(
    problems: Problems, places: Places, *, is_short: bool
) -> list[tuple[Problem, str]]:
    """Return problems with the URLs of their places: errors that lose records, hanging transactions,
    other errors, warnings, other open transactions and notes. With ``is_short`` transactions lead to
    the page of their partition, which explains them.
    """
    found: list[tuple[int, Problem, str]] = []
    for row in problems.findings:
        of = "" if row["topic"] is None else f" in {row['topic']}-{row['partition']}"
        title, where = f"{CATALOG[row['code']].title}{of}", describe_place(row)
        problem = Problem(
            row["severity"], title, where, row["meaning"], row["remedy"], "", suggest_commands(row)
        )
        rank = 0 if row["severity"] == "error" and row["records"] else 2
        found.append((rank, problem, _link_finding(row, places)))
    stable = find_stable_offsets(problems.transactions)
    for row in merge_copies(problems.transactions):
        problem = describe_transaction(row, stable)
        key = places.get(row["directory"], ("", None))[0]
        href = make_url("partitions", key, "batches", offset=row["first_offset"])
        href = make_url("partitions", key) if is_short else href
        found.append((1, problem, href if key else "/"))
    found.sort(key=lambda one: (SEVERITIES.index(one[1].level), one[0]))
    return [(problem, href) for _, problem, href in found]


def _link_finding(row: Mapping[str, Any], places: Places) -> str:
    """Return the URL of the place of a finding: its byte or offset, its partition, or the first page."""
    partition_id, segment = places.get(row["file"], ("", None))
    if segment is not None and row["byte"] is not None:
        return make_url("partitions", partition_id, "batches", segment=segment, byte=row["byte"])
    if not partition_id:  # a file beside the segments
        parent = os.path.dirname(row["file"] or "")  # noqa: PTH120
        own = os.path.join(parent, f"{row['topic']}-{row['partition']}")  # noqa: PTH118
        partition_id = places.get(parent, places.get(own, ("", None)))[0]
    if partition_id and row["first_offset"] is not None:
        return make_url("partitions", partition_id, "batches", offset=max(row["first_offset"], 0))
    return make_url("partitions", partition_id) if partition_id else "/"
