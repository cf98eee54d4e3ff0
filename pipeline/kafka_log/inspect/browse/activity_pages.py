"""Pages about what producers and consumers did: transactions, and consumer groups."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.browse.batch_windows import Budget, Target, read_window
from kafka_log.inspect.browse.document import Page, Query, make_link, make_url
from kafka_log.inspect.browse.listing import Listing
from kafka_log.inspect.browse.place import MAX_ENTRIES
from kafka_log.inspect.browse.problems import MAX_BYTES, choose_partitions, find_transactions
from kafka_log.inspect.groups.table import Groups, commit_table, group_table
from kafka_log.inspect.report.activity_sections import build_groups, build_transactions
from kafka_log.inspect.report.contents import Contents
from kafka_log.inspect.report.html import Child, element
from kafka_log.inspect.report.origin import Origin
from kafka_log.inspect.report.section import PlaceUrl, list_lines
from kafka_log.logs.names import CONSUMER_OFFSETS
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition
from kafka_log.logs.replicas import find_duplicate
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Batch
from kafka_log.text.json_values import to_rows


def show_transactions(listing: Listing, query: Query, now: int | None, origin: Origin) -> Page:
    """Return the page of the transactions of partitions from the index ``from`` on, as many as one
    page may read, with a link to the next ones. Partitions above MAX_BYTES are left out and
    counted. Raise ParameterError for an impossible number; OSError if a transaction marker cannot
    be read.
    """
    partitions = list(listing.partitions.values())
    begin = min(query.count("from"), len(partitions))
    checked, large, end = choose_partitions(partitions, begin)
    contents = Contents(checked, find_duplicate(checked) is not None, deep=False)
    contents.transactions = find_transactions(
        checked, listing.found, contents.unread.append, now=now
    )
    contents.stat = list(_read_newest_times(checked, contents.transactions))
    said = f"Read: {count_noun(len(checked), 'partition', spec=',')} of {len(partitions):,}."
    if large:
        said += f" Not read: {count_noun(len(large), 'large partition', spec=',')}; kafka-log txn reads all."
    body: list[Child] = [
        element("p", said),
        *build_transactions(contents, origin, _make_finder(listing)).body,
    ]
    if contents.unread:
        body.append(list_lines("Not read", contents.unread, origin))
    if end < len(partitions):
        href = make_url("transactions", **{"from": end})
        body.append(
            element("p", make_link("Transactions of the next partitions →", href), class_="next")
        )
    return Page("Transactions", body, [("Transactions", make_url("transactions"))])


def _make_finder(listing: Listing) -> PlaceUrl:
    """Return a function that returns the URL of the partition of a row, or of the batches from an
    offset on; None if the partition is not listed. Of several copies it takes that in the
    ``directory`` of the row, else the first.
    """
    ids: dict[str | tuple[str, int], str] = {}
    for key, partition in listing.partitions.items():
        ids[utf8(os.fspath(partition.directory))] = key
        ids.setdefault((utf8(partition.topic), partition.partition), key)

    def find_url(row: Mapping[str, Any], offset: int | None) -> str | None:
        """Return the URL of a partition or of an offset in it; None if it is not listed."""
        key = ids.get(row.get("directory", ""), ids.get((row["topic"], row["partition"])))
        if key is None:
            return None
        steps = ("partitions", key) if offset is None else ("partitions", key, "batches")
        return make_url(*steps, offset=offset)

    return find_url


def _read_newest_times(
    partitions: Sequence[Partition], transactions: pa.Table
) -> Iterator[dict[str, Any]]:
    """Yield topic, partition and ``last_timestamp`` of the partitions with an open transaction, in the
    time of one request. It is the newest timestamp in the last MAX_ENTRIES batches with a valid
    checksum, None without any.
    """
    rows = to_rows(transactions.select(["topic", "partition", "state"]))
    are_open = {(row["topic"], row["partition"]) for row in rows if row["state"] == "open"}
    budget = Budget()
    for partition in partitions:
        key = utf8(partition.topic), partition.partition
        if key not in are_open or not partition.segments or budget.is_spent:
            continue
        last = partition.segments[-1]
        window = read_window(last, None, Target("end"), MAX_ENTRIES, budget)
        batches = [one for one in window.entries if isinstance(one, Batch) and not one.is_control]
        newest = max((one.max_timestamp for one in batches), default=-1)
        yield {
            "topic": key[0],
            "partition": key[1],
            "last_timestamp": newest if newest >= 0 else None,
        }


def show_groups(listing: Listing, origin: Origin) -> Page:
    """Return the page of consumer groups and their committed offsets, also if __consumer_offsets is
    not selected. Say why they are not known if it is larger than MAX_BYTES, is not there, or cannot
    be read; after damage, show what can be read and say that commits may be missing.
    """
    found = listing.found.partitions
    contents = Contents(found, has_replicas=False, deep=False)
    if sum(p.size for p in found if p.topic == CONSUMER_OFFSETS) > MAX_BYTES:
        contents.missing["groups"] = (
            f"{CONSUMER_OFFSETS} is too large to be read here; kafka-log groups reads it"
        )
    else:
        _read_groups(contents)
    body = list(build_groups(contents, origin, _make_finder(listing)).body)
    if contents.unread:
        body.append(list_lines("Not read", contents.unread, origin))
    return Page("Consumer groups", body, [("Consumer groups", make_url("groups"))])


def _read_groups(contents: Contents) -> None:
    """Fill in ``commits`` and ``groups`` of ``contents``; after damage those that can be read, with
    a line in ``unread``. Without them, ``missing`` has the reason.
    """
    try:
        for salvage in (False, True):
            try:
                wanted = Groups(salvage=salvage)
                contents.commits = to_rows(commit_table(contents.partitions, wanted))
                contents.groups = to_rows(group_table(contents.partitions, wanted))
                return
            except CodecError as error:
                if salvage:
                    raise
                contents.unread.append(f"{error}; newer commits of groups may be missing")
    except NotFoundError:
        contents.missing["groups"] = f"there is no {CONSUMER_OFFSETS} below the paths"
    except (CodecError, DirectoryError, OSError) as error:
        contents.missing["groups"] = str(error)
