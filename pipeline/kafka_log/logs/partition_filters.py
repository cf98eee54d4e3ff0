"""Filters of partitions: names and glob patterns of topics, numbers and ranges of numbers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.segment.globs import compile_pattern

MAX_PARTITION = (1 << 31) - 1

Numbers = int | range
"""A partition number, or a range of numbers."""

_INTERNAL = "__"
"""Beginning of the names of internal topics, and of the patterns that match them."""
_SPECIAL = frozenset("*?[{\\")
_NUMBERS = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?\Z", re.ASCII)


def parse_topics(text: str) -> tuple[str, ...]:
    """Return the names and patterns of a comma-separated list in order, without surrounding spaces
    and duplicates. Commas in braces or brackets and after a backslash do not separate. Raise
    ValueError if no name is left, PatternError (a ValueError) for an invalid pattern.
    """
    found = tuple(dict.fromkeys(part for one in _split_names(text) if (part := one.strip())))
    if not found:
        raise ValueError(f"{text!r} is not a topic: write names or patterns with commas between")
    return tuple(map(check_topic, found))


def check_topic(name: str) -> str:
    """Return a name or pattern of topics. Raise PatternError (a ValueError) for an invalid pattern."""
    if is_topic_pattern(name):
        compile_pattern(name)
    return name


def is_topic_pattern(name: str) -> bool:
    """Return whether a name has characters of patterns, which no topic that Kafka creates has."""
    return not _SPECIAL.isdisjoint(name)


def _split_names(text: str) -> list[str]:
    """Return the parts of a text between its commas, unchanged, except commas in braces, in
    brackets and after a backslash.
    """
    parts, begin, depth, in_brackets, at = [], 0, 0, False, 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
        elif in_brackets:
            in_brackets = character != "]"
        elif character == "[":
            in_brackets = "]" in text[at:]
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
    return [*parts, text[begin:]]


def parse_partitions(text: str) -> tuple[Numbers, ...]:
    """Return the numbers and ranges of a comma-separated list such as ``0-3,7``, in order, each
    once; overlapping ranges are not merged. Both ends of a range are included, and spaces around
    items accepted. Raise ValueError for other text, also an empty item, a number above 2^31 - 1,
    and a range in the wrong order.
    """
    return tuple(dict.fromkeys(map(_parse_numbers, text.split(","))))


def _parse_numbers(text: str) -> Numbers:
    """Return a number, or the range of ``0-3``. Raise ValueError for other text, a number above
    2^31 - 1, or a range in the wrong order.
    """
    found = _NUMBERS.match(text.strip())
    low, high = (0, -1) if found is None else (int(found[1]), int(found[2] or found[1]))
    if found is None or max(low, high) > MAX_PARTITION:
        raise ValueError(
            f"{text!r} is not a partition number: write a whole number from 0 to {MAX_PARTITION}, or a list such as 0-3,7"
        )
    if low > high:
        raise ValueError(f"the partition {low} is after {high}: write the lower one first")
    return low if found[2] is None else range(low, high + 1)


def format_numbers(numbers: Numbers) -> str:
    """Return a number, or a range as people write it: ``0-3``."""
    return f"{numbers.start}-{numbers.stop - 1}" if isinstance(numbers, range) else str(numbers)


class TopicFilter(Container[str]):
    """Set of the topics that have one of some names, or match one of some patterns
    (:mod:`kafka_log.segment.globs`).

    A name of a topic selects it even if it has characters of patterns. Patterns match Kafka's internal topics only if they begin with
    two underscores.

    Args:
        wanted: Names and patterns.

    Raises:
        PatternError: If a pattern is invalid.
    """

    def __init__(self, wanted: Iterable[str]) -> None:
        self._names = frozenset(wanted)
        self._patterns = [
            (compile_pattern(name), name.startswith(_INTERNAL))
            for name in sorted(self._names)
            if is_topic_pattern(name)
        ]

    def __contains__(self, topic: object) -> bool:
        if not isinstance(topic, str):
            return False
        return topic in self._names or any(
            pattern.fullmatch(topic) is not None and (is_internal or topic not in INTERNAL_TOPICS)
            for pattern, is_internal in self._patterns
        )

    def find_excluded(self, topics: Iterable[str]) -> list[str]:
        """Return the internal topics among ``topics`` that a pattern would match if it began with two underscores, sorted."""
        return sorted(
            topic
            for topic in set(topics)
            if topic in INTERNAL_TOPICS
            and topic not in self
            and any(pattern.fullmatch(topic) for pattern, _ in self._patterns)
        )


class PartitionFilter(Container[int]):
    """Set of some partition numbers and ranges of numbers.

    Args:
        wanted: Numbers and ranges.
    """

    def __init__(self, wanted: Iterable[Numbers]) -> None:
        items = list(wanted)
        self._numbers = frozenset(one for one in items if isinstance(one, int))
        self._ranges = [one for one in items if isinstance(one, range)]

    def __contains__(self, number: object) -> bool:
        return number in self._numbers or any(number in one for one in self._ranges)


def find_unmatched_topics(wanted: Iterable[str], topics: Iterable[str]) -> list[str]:
    """Return the names and patterns that select none of ``topics``, sorted, each once. Raise
    PatternError, a ValueError, for an invalid pattern that is no topic itself.
    """
    there = set(topics)
    return sorted(
        name
        for name in set(wanted) - there
        if not is_topic_pattern(name)
        or there.isdisjoint(filter(TopicFilter([name]).__contains__, there))
    )


def find_unmatched_numbers(wanted: Iterable[Numbers], numbers: Iterable[int]) -> list[Numbers]:
    """Return the numbers and ranges that select none of ``numbers``, by their first number, each
    once.
    """
    there = set(numbers)
    missing = (
        one
        for one in set(wanted)
        if (one not in there if isinstance(one, int) else not any(n in one for n in there))
    )
    return sorted(
        missing, key=lambda one: (one, one) if isinstance(one, int) else (one.start, one.stop)
    )
