"""The pages by the path of their URL, and pages of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.browse.activity_pages import show_groups, show_transactions
from kafka_log.inspect.browse.batch_pages import show_batch, show_batches
from kafka_log.inspect.browse.bytes_page import show_bytes
from kafka_log.inspect.browse.document import Page, ParameterError, Query, write_document
from kafka_log.inspect.browse.listing import Lister, Listing, UnknownIdError
from kafka_log.inspect.browse.overview_pages import (
    make_refusal,
    show_overview,
    show_partition,
    show_problems,
    show_topic,
)
from kafka_log.inspect.browse.record_pages import show_record, show_search
from kafka_log.inspect.browse.records import RecordView
from kafka_log.inspect.report.html import element
from kafka_log.logs.partitions import DirectoryError, NotFoundError


class Site:
    """All pages about some paths.

    Args:
        lister: Lists the paths.
        view: How records are shown.
        now: Time at which the logs were in this state, in milliseconds since 1970; None if it is not known.
    """

    def __init__(self, lister: Lister, view: RecordView, now: int | None = None) -> None:
        self._lister = lister
        self._view = view
        self._now = now

    def answer(self, path: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        """Return HTTP status and page (UTF-8 bytes) for the path of a URL and its parameters. No
        error is raised, each is a page: 404 if the page, a topic, partition, record, file or log
        does not exist; 400 for an impossible parameter, invalid schemas or a missing package; 500
        for unreadable files and for faults.
        """
        try:
            page = self._find_page(path, Query(parameters))
        except (UnknownIdError, NotFoundError, DirectoryError, FileNotFoundError) as error:
            page = make_error_page(HTTPStatus.NOT_FOUND, str(error))
        except (CodecError, OSError) as error:
            page = make_error_page(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except (ValueError, ImportError) as error:
            page = make_error_page(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:
            said = f"This page could not be made, because of a fault in kafka-log: {type(error).__name__}: {error}."
            page = make_error_page(HTTPStatus.INTERNAL_SERVER_ERROR, said)
        return page.status, write_document(page)

    def _find_page(self, path: str, query: Query) -> Page:
        """Return the page for a path; for an impossible parameter of a page about a partition, one
        that says so. Raise UnknownIdError if there is none, and what the page and
        :meth:`Lister.list_paths` raise.
        """
        listing = self._lister.list_paths()
        steps = path.strip("/").split("/")
        try:
            return self._make_page(steps, query, listing)
        except ParameterError as error:
            if len(steps) < 2 or steps[0] != "partitions":
                raise
            return make_refusal(listing, query, steps[1], end_sentence(error))

    def _make_page(self, steps: Sequence[str], query: Query, listing: Listing) -> Page:
        """Return the page for the steps of a path. Raise UnknownIdError if there is none, and what
        the page raises.
        """
        match steps:
            case [""]:
                return show_overview(listing, query, self._now)
            case ["problems"]:
                return show_problems(listing, query, self._now)
            case ["transactions"]:
                return show_transactions(listing, query, self._now, self._lister.origin)
            case ["groups"]:
                return show_groups(listing, self._lister.origin)
            case ["topics", topic_id]:
                return show_topic(listing, query, topic_id, self._now)
            case ["partitions", partition_id]:
                return show_partition(listing, query, partition_id, self._now)
            case ["partitions", partition_id, "batches"]:
                return show_batches(listing, query, partition_id, self._now)
            case ["partitions", partition_id, "batch"]:
                return show_batch(listing, query, partition_id, self._view)
            case ["partitions", partition_id, "record"]:
                return show_record(listing, query, partition_id, self._view, self._now)
            case ["partitions", partition_id, "bytes"]:
                return show_bytes(listing, query, partition_id, self._view)
            case ["partitions", partition_id, "search"]:
                return show_search(listing, query, partition_id, self._view)
        raise UnknownIdError("there is no such page")


def make_error_page(status: int, message: str) -> Page:
    """Return the page for a status with a message."""
    words = HTTPStatus(status).phrase
    return Page(words, [element("p", end_sentence(message))], status=status)


def end_sentence(message: object) -> str:
    """Return a message with a capital letter at its begin and a period at its end."""
    text = str(message)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
