"""Parse YAML text into plain nodes with places. Tags, anchors and aliases are reported."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from codecgen.diagnostics import Diagnostic, Span, lines_of
from codecgen.schema import other_words

MAX_BYTES = 1 << 20
MAX_DEPTH = 30
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value. ``plain`` is false for text in quotes or blocks."""

    text: str
    plain: bool
    span: Span
    block: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in order."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in order; each key is a scalar node."""

    entries: tuple[tuple[Scalar, Node], ...]
    span: Span

    def get(self, key: str) -> Node | None:
        """Return the value of a key, or None if it is missing."""
        return next((value for k, value in self.entries if k.text == key), None)

    @property
    def has_numbers(self) -> bool:
        """Return whether the first key begins with a digit, as versions do."""
        return bool(self.entries) and self.entries[0][0].text[:1].isdecimal()


Node = Scalar | Sequence | Mapping


def load(
    file: str, text: str, *, max_bytes: int = MAX_BYTES, deepest: int = MAX_DEPTH
) -> tuple[list[Mapping], list[Diagnostic]]:
    """Return the documents of one YAML file that are mappings, in order, and the diagnostics about
    it, which name it ``file``. Entries with a wrong key (no word, ``<<``, or given before) are left
    out and reported, so are other documents. There are no documents if ``text`` is larger than
    ``max_bytes`` bytes, nested deeper than ``deepest``, not UTF-8 (it has surrogates), not YAML, or uses
    anchors, aliases or tags.

    Args:
        file: Name that diagnostics show.
        text: Text of the file.
        max_bytes: Maximum size in bytes.
        deepest: Maximum depth of nesting.
    """
    documents, found = _load_cached(file, text, max_bytes, deepest)
    return list(documents), list(found)


@lru_cache(maxsize=1024)  # nodes are frozen: who loads again what has not changed has it at once
def _load_cached(
    file: str, text: str, max_bytes: int, deepest: int
) -> tuple[list[Mapping], list[Diagnostic]]:
    """Return the documents and diagnostics of :func:`load`, from a cache for a file name, text and
    limits that were loaded before. The result is shared and must not be changed.
    """
    if len(text.encode("utf-8", "replace")) > max_bytes:
        message = f"the file is larger than {max_bytes} bytes"
        return [], [Diagnostic("C026", message, Span(file, 1, 1, 2))]
    bad = _not_utf8(file, text)
    if bad is not None:
        return [], [bad]
    reader = _Reader(file, deepest)
    try:
        events = []
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            events.append(event)
            reader.check(event)
            if reader.depth > deepest:
                break
        if reader.diagnostics:
            return [], reader.diagnostics
        roots = _Composer(events).roots()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reason = error.problem or "the file is not YAML"
        help, other = other_words.yaml_help(reason, lines_of(text)[line - 1])
        column = other or column
        return [], [Diagnostic("C001", reason, Span(file, line, column, column + 1), help=help)]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "the file is not YAML"
        return [], [Diagnostic("C001", reason, Span(file, 1, 1, 2))]
    documents = []
    for root in roots:
        node = reader.convert(root)
        if isinstance(node, Mapping):
            documents.append(node)
        else:
            reader.report("C006", "a document is a mapping", node.span)
    return documents, reader.diagnostics


def _not_utf8(file: str, text: str) -> Diagnostic | None:
    """Return a diagnostic, in ``file``, for the first bytes that are not UTF-8 (lone surrogates in
    ``text``), or None if there are none.
    """
    for number, line in enumerate(text.split("\n"), 1):
        try:
            line.encode("utf-8")
        except UnicodeEncodeError as error:
            at = error.start + 1
            return Diagnostic("C001", "the file is not UTF-8 text", Span(file, number, at, at + 1))
    return None


class _Composer(yaml.composer.Composer, yaml.resolver.Resolver):
    """Composer of YAML nodes that takes a list of events in the place of a parser."""

    def __init__(self, events: list[yaml.Event]) -> None:
        yaml.composer.Composer.__init__(self)
        yaml.resolver.Resolver.__init__(self)
        self._events = deque(events)

    def check_event(self, *kinds: type) -> bool:
        """Return whether another event exists, of one of ``kinds`` if given."""
        return bool(self._events) and (not kinds or isinstance(self._events[0], kinds))

    def peek_event(self) -> yaml.Event:
        """Return the next event without consuming it. Raise IndexError if there is none."""
        return self._events[0]

    def get_event(self) -> yaml.Event:
        """Consume and return the next event. Raise IndexError if there is none."""
        return self._events.popleft()

    def roots(self) -> list[yaml.Node]:
        """Return the root node of each YAML document, in order, and consume all events."""
        found: list[yaml.Node] = []
        while self.check_node():
            node = self.get_node()
            assert node is not None  # check_node said so
            found.append(node)
        return found


class _Reader:
    """Turns YAML nodes into plain nodes with places. Diagnostics collect in ``diagnostics``."""

    def __init__(self, file: str, deepest: int) -> None:
        self.file = file
        self.deepest = deepest
        self.diagnostics: list[Diagnostic] = []
        self.depth = 0

    def report(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Append a diagnostic with the id ``code`` to ``diagnostics``."""
        self.diagnostics.append(Diagnostic(code, message, span, help=help))

    def span(self, start: yaml.Mark | Any, end: yaml.Mark | Any) -> Span:
        """Return the place from ``start`` to ``end`` on the line of the first, counted from 1; only
        the first character if ``end`` is on another line.
        """
        end_column = end.column + 1 if end.line == start.line else start.column + 2
        return Span(self.file, start.line + 1, start.column + 1, end_column)

    def check(self, event: yaml.Event) -> None:
        """Record a diagnostic if an event nests too deep, is or has an alias, anchor or tag, which
        schemas do not use, or is a scalar with a surrogate, which no file can have. Collection
        events also update the depth.
        """
        span = self.span(event.start_mark, event.end_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            self.depth += 1
            if self.depth > self.deepest:
                message = f"lists and mappings are nested more than {self.deepest} deep"
                self.report("C026", message, span, "write them with fewer levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            self.depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and (half := _SURROGATE.search(event.value)):
            message = f"\\u{ord(half[0]):04x} is half of a character"
            help = "write the character itself, or \\U and its number with eight digits"
            self.report("C001", message, span, help)
        if isinstance(event, yaml.AliasEvent):
            self.report("C002", "aliases are not used in schemas", span, "write the value out")
        elif getattr(event, "anchor", None):
            self.report("C002", "anchors are not used in schemas", span, "write the value out")
        elif tag := getattr(event, "tag", None):
            help = f"in an expression write not {tag[1:]}" if re.match(r"![a-z_]", tag) else ""
            self.report("C002", f"tags are not used in schemas: {tag}", span, help)

    def convert(self, node: yaml.Node) -> Node:
        """Return a YAML node as a Scalar, Sequence or Mapping with its place. Report and drop
        entries whose key is no scalar, is ``<<``, or is given twice (the first one stays).
        """
        span = self.span(node.start_mark, node.end_mark)
        if isinstance(node, yaml.ScalarNode):
            plain = node.style is None
            return Scalar(str(node.value), plain, span, node.style in (">", "|"))
        if isinstance(node, yaml.SequenceNode):
            return Sequence(tuple(self.convert(item) for item in node.value), span)
        entries: list[tuple[Scalar, Node]] = []
        seen: dict[str, Span] = {}
        for key, value in node.value:
            name = self.convert(key)
            if not isinstance(name, Scalar):
                message = "a key must be a word, not a list or a mapping"
                self.report("C006", message, name.span, "write one word, such as `name: ..`")
            elif name.text == "<<":
                self.report("C002", "merge keys are not used in schemas", name.span)
            elif name.text in seen:
                help = f"remove one of the two; the first is at {seen[name.text]}"
                self.report("C003", f'"{name.text}" is given twice', name.span, help)
            else:
                seen[name.text] = name.span
                entries.append((name, self.convert(value)))
        return Mapping(tuple(entries), span)
