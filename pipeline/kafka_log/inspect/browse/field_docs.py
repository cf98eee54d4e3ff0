"""Which columns of a batch header are made of which fields, and what the schemas say about a field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_codecs.rows.batches import BATCHES as BATCH_ROWS
from kafka_log.segment.model import Batch


def fields_of(column: str, batch: Batch) -> Iterable[str]:
    """Return the names of the fields from which a column of the batch header is made, each once, in
    the message format of ``batch``; ``()`` if it is made of none.
    """
    for case in BATCH_ROWS.cases:
        if case.layout.version in (batch.magic, None) and column in case.columns:
            paths = case.columns[column].paths
            if paths:
                return dict.fromkeys(path.partition(".")[0] for path in paths)
    return ()


@cache
def columns_by_field() -> dict[str, list[str]]:
    """Return the columns of the batch header that are made of a field, by its name: those of this
    field alone, the one of its name first; if there are none, those of it and others. Columns on
    request, which the page of a batch does not show, are left out if there are others.
    """
    ranks: dict[str, dict[str, int]] = {}
    for case in BATCH_ROWS.cases:
        for name, column in case.columns.items():
            fields = {path.partition(".")[0] for path in column.paths}
            for field in fields:
                rank = 0 if name == field else len(fields)
                ranks.setdefault(field, {})
                ranks[field][name] = min(rank, ranks[field].get(name, rank))
    found = {}
    for field, of_field in ranks.items():
        fewest = max(min(of_field.values()), 1)
        kept = [c for c in BATCHES.columns if of_field.get(c.name, fewest + 1) <= fewest]
        shown = [c.name for c in kept if not c.on_request] or [c.name for c in kept]
        found[field] = sorted(shown, key=of_field.__getitem__)
    return found


@cache
def shown_columns() -> frozenset[str]:
    """Return the names of the columns in the table of a batch header. These are the columns of the
    view ``batches`` that it has without being asked, and of the others those that stand first for a
    field in :func:`columns_by_field`.
    """
    alone = {names[0] for names in columns_by_field().values()}
    return frozenset(c.name for c in BATCHES.columns if not c.on_request or c.name in alone)


def columns_of(path: str) -> Sequence[str]:
    """Return the columns of the batch header that are made of a field; none for fields of records."""
    return () if "[" in path else columns_by_field().get(path.partition(".")[0], ())


def document_field(path: str) -> str:
    """Return what the schemas say about the field at ``path``. That is the documentation of the
    column of batches with its name, else of all that are made of it, else of the column of records
    with its name. Return "" if there is none.
    """
    docs = {column.name: column.doc for column in BATCHES.columns}
    of_header = columns_of(path)
    shown = [name for name in of_header if name == path] or of_header
    if shown:
        return " ".join(docs[n] if n == path else f"{n}: {docs[n]}" for n in shown)
    # A field of a record is called after the column, one of its headers after a member of that column.
    columns, doc = RECORDS.columns, ""
    for name in [part.partition("[")[0] for part in path.split(".")][1:]:
        column = next((one for one in columns if one.name == name), None)
        if column is None:
            return ""
        columns, doc = column.members, column.doc
    return doc
