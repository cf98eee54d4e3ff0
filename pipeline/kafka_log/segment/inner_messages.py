"""Messages of a wrapper, read as Apache Kafka's reader reads them.

Kafka's reader first finds the bounds of all messages up to the end of the stream, since their offsets are relative to the last one.
An error in that phase yields no message. Then it reads the messages in order, and yields those before the first unreadable one.
It uses one layout for each magic byte of a message, and ignores the version of the wrapper.

Salvage also yields the messages before the damage of a wrapper. If their offsets are relative to a lost last message, only the offset before the
wrapper tells what they may be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from construct import Container, ListContainer

from codecgen.runtime.arrays import Array
from codecgen.runtime.compression.base import PASSES_PAUSE
from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import (
    CodecError,
    LengthError,
    LimitError,
    TrailingError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsing import Opened
from codecgen.runtime.rows import Case
from kafka_codecs.rows.records import RECORDS

LARGEST = (1 << 31) - 9
"""The most bytes that a message may say it has: the longest array that Java makes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A message in the stream: its layout, its bytes, and its fields at fixed places."""

    layout: Layout
    source: Source
    head: Container

    @property
    def is_wrapper(self) -> bool:
        """Whether the message is compressed, so that it holds messages itself."""
        case = RECORDS.case(self.layout, self.head)
        return case is None or case.each is not None


def find_messages(
    case: Case, opened: Opened, session: Session
) -> tuple[list[Found], CodecError | None]:
    """Return a list of the messages of a wrapper (compressed legacy message, ``opened`` with the
    columns of ``case``) and None, and store their header fields in those of the wrapper. Raise
    CodecError at any error, and if there are no messages. If the session accepts torn entries and a
    message was found before, return the error in place of None.
    """
    assert case.each is not None and opened.section is not None and opened.element is not None
    section = opened.section()
    assert section is not None
    found: list[Found] = []
    wrong: CodecError | None = None
    try:
        if _version(case, opened.fields) != _array(case).version:
            raise ValueRefused(
                "no wrapper message has the magic byte of this one, so that the messages inside of it are not read",
                section.where(0),
            )
        try:
            for source in _sources(case.layout, section, session):
                found.append(_find_message(_array(case), source))
                if len(found) > session.limits.elements:
                    more = f"more than {count_noun(session.limits.elements, 'element')}"
                    raise LimitError(more, source.where())
        except CodecError as error:
            if not session.torn or not found:
                raise
            wrong = opened.element(error, None)
        if not found:
            raise LengthError("the wrapper message contains no complete message", section.where())
        heads = opened.fields[case.each] = ListContainer(one.head for one in found)
        rule = case.layout.by_name[case.each].refuse
        if rule is not None and rule.holds(opened.fields):
            raise ValueRefused(rule.broken(heads), section.where(0))
    except CodecError as error:
        raise opened.element(error, None) from None
    return found, wrong


def has_relative_offsets(case: Case, entry: Container) -> bool:
    """Return whether offsets of messages count from the offset of their wrapper ``entry``: its
    version has such offsets, and its own offset is not 0.
    """
    name = "offset"
    return name in case.columns[name].paths and bool(entry[name])


def read_messages(
    case: Case, opened: Opened, found: list[Found], session: Session, *, is_whole: bool
) -> Iterator[Container]:
    """Yield the messages that :func:`find_messages` found in a wrapper, in order. Raise CodecError,
    whose path has the index, at the first one that cannot be read or is a wrapper itself. Another
    version than the wrapper's is a finding. So is a broken rule about the messages, after the last
    one, if the session has ``rules``, ``found`` has all of them (``is_whole``) and all have the
    wrapper's version: the rules are about messages of one version.
    """
    assert opened.element is not None and opened.check is not None
    items: list[Container] | None = [] if is_whole and session.rules else None
    session.depth += 1
    session.nesting += 1
    try:
        for i, one in enumerate(found):
            noticed = len(session.findings)
            try:
                if one.is_wrapper:
                    reason = "messages in a wrapper must not be compressed themselves"
                    raise ValueRefused(reason, one.source.where())
                item = one.layout.read(one.source, opened.fields)
                if not _check_version(case, item, one.source):
                    items = None
            except CodecError as error:
                raise opened.element(error, i) from None
            finally:
                for finding in session.findings[noticed:]:
                    opened.element(finding, i)
            if items is not None:
                items.append(item)
            yield item
        if items is not None:
            opened.check(items)
    finally:
        session.nesting -= 1
        session.depth -= 1


def _array(case: Case) -> Array:
    """Return the codec of the array of messages in the layout of ``case``, which must have one."""
    assert case.each is not None
    codec = case.layout.by_name[case.each].codec
    assert isinstance(codec, Array)
    return codec


def _version(case: Case, fields: Container) -> Any:
    """Return the version that a message says it has."""
    return fields.get(getattr(_array(case).element, "by", ""))


def _sources(layout: Layout, section: Source, session: Session) -> Iterator[Source]:
    """Yield a Source with the bytes of each message of a decompressed wrapper. An incomplete last
    one is a finding (TrailingError in a strict session); an empty LZ4 block may end them early.
    Raise LengthError if a length is too small or above 2**31 - 9; CodecError where decompression
    failed.

    As in Kafka, an empty block of LZ4 ends the messages if it lies before or among the bytes up to the length, or if fewer than
    ``PASSES_PAUSE`` bytes of the message follow.
    """
    assert layout.length is not None
    head = layout.length.before
    pauses = deque(sorted(section.pauses))
    while section.left:
        start = section.pos
        while pauses and pauses[0] < start:
            pauses.popleft()
        if pauses and pauses[0] < start + head:
            return
        size = layout.frame(section)
        if size is not None and size - head > LARGEST:
            raise LengthError(
                f"a message inside the wrapper message has {count_noun(size, 'byte')}, more than Kafka reads",
                section.where(),
            )
        while size is not None and pauses and pauses[0] < start + size:
            if start + size - pauses.popleft() < PASSES_PAUSE:
                return
        if size is None or size > section.left:
            if section.pending is not None:
                raise section.pending
            reason = f"the last element is cut off after {count_noun(section.left, 'byte')}"
            session.tolerate(TrailingError(reason, section.where()))
            return
        yield section.window(size, "message")
    if section.pending is not None and section.pos not in section.pauses:
        raise section.pending


def _find_message(array: Array, source: Source) -> Found:
    """Return the message with the bytes ``source``, with its fields at fixed positions, unverified.
    An unknown version is read as the newest one. Raise CodecError if the bytes end before these
    fields.
    """
    choice: Any = array.element
    cases = choice.cases
    layout = cases.get(choice.peek(source), cases[max(cases)])
    quiet = Session(strict=False)  # what is odd is noticed when the message is read
    head = Container()
    for f in layout.fields:
        if layout.is_fixed(f.name):
            at = source.pos + layout.offset_of(f.name)
            head[f.name] = f.codec.read(Source(source.data, quiet, pos=at, end=source.end), head)
    return Found(layout, source, head)


def _check_version(case: Case, item: Container, source: Source) -> bool:
    """Return whether a message has the version of the array around it; if not, add ValueRefused to
    the findings of the session.
    """
    version, around = _version(case, item), _array(case).version
    is_same: bool = version == around
    if not is_same:
        reason = f"element of version {version} inside version {around}"
        source.session.tolerate(ValueRefused(reason, source.where()))
    return is_same
