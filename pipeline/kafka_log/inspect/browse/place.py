"""A segment of a partition, as the URL of a page names it, and limits of pages about it."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from kafka_log.inspect.browse.batch_windows import (
    Budget,
    Entry,
    Target,
    read_window,
)
from kafka_log.inspect.browse.document import (
    Query,
    make_link,
    make_url,
)
from kafka_log.inspect.browse.listing import Listing, UnknownIdError, get_segment, segment_id
from kafka_log.inspect.browse.overview_pages import make_problem_anchor, name_partition, path_to
from kafka_log.inspect.report.html import element
from kafka_log.logs.partitions import Segment, pair_with_next_base_offset

MAX_ENTRIES = 50
"""Maximum number of batches, of records and of hits of a page."""
HIDDEN = (
    "hidden, because it may contain secrets: start kafka-log browse with --show-secrets to see it"
)


class Place:
    """A segment of a partition, as a URL names it.

    Args:
        listing: What lies below the paths.
        partition_id: Id of the partition.
        query: Parameters; ``segment`` has the id of the segment.

    Raises:
        UnknownIdError: If there is no such partition or segment.
    """

    def __init__(self, listing: Listing, partition_id: str, query: Query) -> None:
        self.partition_id = partition_id
        self.partition = listing.get_partition(partition_id)
        self.segments = list(pair_with_next_base_offset(self.partition.segments))
        wanted = query.text("segment")
        self.index = get_segment(self.partition, wanted) if wanted else 0
        if not self.segments:
            raise UnknownIdError(
                f"{name_partition(self.partition)} has no segment, so that there is nothing to show"
            )

    @property
    def segment(self) -> Segment:
        """The segment."""
        return self.segments[self.index][0]

    @property
    def next_base(self) -> int | None:
        """Base offset of the next segment; None if there is none."""
        return self.segments[self.index][1]

    def make_url(self, page: str, **parameters: str | int | None) -> str:
        """Return the URL of a page about this segment."""
        named = {"segment": segment_id(self.segment), **parameters}
        return make_url("partitions", self.partition_id, page, **named)

    def link_finding(self, byte: int) -> Element:
        """Return the link from damage at ``byte`` to its finding on the page of the partition."""
        anchor = make_problem_anchor(self.make_url("batches", byte=byte))
        href = f"{make_url('partitions', self.partition_id)}#{anchor}"
        return element("p", make_link("What it means, and what to do next →", href), class_="next")

    def path(self, *more: tuple[str, str]) -> list[tuple[str, str]]:
        """Return the links from the topic to this segment, and ``more``."""
        name = self.segment.path.name
        return [
            *path_to(self.partition, self.partition_id),
            (name, self.make_url("batches")),
            *more,
        ]

    def find_entry(self, byte: int) -> Entry:
        """Return the batch or range of bytes that contains ``byte``. Raise UnknownIdError if the segment
        ends before it, or it cannot be found in the time of a request.
        """
        window = read_window(self.segment, self.next_base, Target("byte", byte), 1, Budget())
        if not window.entries:
            raise UnknownIdError(
                f"{self.segment.path}: no batch was found at byte {byte}: the segment ends before it, or the search takes longer than a page may: use kafka-log hexdump --byte {byte}"
            )
        return window.entries[0]
