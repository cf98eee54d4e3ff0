"""Find the comments of a YAML text, and give each to the entry that it is about."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import yaml

_COMMENT = re.compile(r"(?:(?<=^)|(?<=[ \t]))#[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment.

    Attributes:
        text: The comment with its ``#``.
        index: Where it begins in the text.
        column: Its column, from 0.
        gap: The blanks between it and what stands before it on its line; None if it has the line to itself.
        after_blank: Whether the line before is blank.
    """

    text: str
    index: int
    column: int
    gap: str | None
    after_blank: bool


@dataclass(slots=True)
class Entry:
    """A key of a block mapping with its value, or an item of a block sequence, with its comments.

    Attributes:
        key: The key; None for an item.
        value: The value.
        above: Comments on the lines above.
        trailing: The comment at the end of the first line.
        below: Comments after the value that belong to no later entry.
        after_blank: Whether a blank line stands above the entry, below its comments.
        is_raw: Whether comments stand inside the value, in braces or brackets, so that it is left as it is.
    """

    key: yaml.ScalarNode | None
    value: yaml.Node
    above: list[Comment] = field(default_factory=list)
    trailing: Comment | None = None
    below: list[Comment] = field(default_factory=list)
    after_blank: bool = False
    is_raw: bool = False

    @property
    def start(self) -> yaml.Mark:
        """Return where the key or the item begins."""
        return self.value.start_mark if self.key is None else self.key.start_mark


class Lines:
    """The lines of a text. Unlike those of YAML they end with line feeds alone."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def follows_blank(self, index: int) -> bool:
        """Return whether the line before that of ``index`` is blank."""
        line = bisect_right(self.starts, index) - 1
        return line > 0 and not self.lines[line - 1].strip()


def scalars_of(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Yield the scalars of a node in order, keys too."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from scalars_of(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from scalars_of(key)
            yield from scalars_of(value)


def find_comments(text: str, nodes: Sequence[yaml.Node]) -> list[Comment]:
    """Return the comments of a text in order. ``nodes`` are the root nodes of its documents. A
    ``#`` inside their scalars, or directly after a character that is no blank, begins no comment.
    """
    lines = Lines(text)
    out: list[Comment] = []
    at = 0
    places = [(s.start_mark.index, s.end_mark.index) for node in nodes for s in scalars_of(node)]
    for start, end in [*places, (len(text), len(text))]:
        for found in _COMMENT.finditer(text, at, max(at, start)):
            index = found.start()
            before = text[text.rfind("\n", 0, index) + 1 : index]
            is_alone = before.strip() in ("", "-", "---")
            gap = None if is_alone else before[len(before.rstrip()) :]
            blank = lines.follows_blank(index)
            out.append(Comment(found[0].rstrip(), index, len(before), gap, blank))
        at = max(at, end)
    return out


def entries_of(node: yaml.Node) -> Iterator[Entry]:
    """Yield the entries of a mapping or sequence in block style and of those inside it, each before
    its own entries, in file order. Yield nothing for scalars and for nodes in braces or brackets.
    """
    if not isinstance(node, yaml.CollectionNode) or node.flow_style:
        return
    for part in node.value:
        entry = Entry(None, part) if isinstance(node, yaml.SequenceNode) else Entry(*part)
        yield entry
        yield from entries_of(entry.value)


def attach(comments: Sequence[Comment], entries: Sequence[Entry]) -> list[Comment]:
    """Give each comment of a document to an entry, as ``above``, ``trailing`` or ``below``, or mark
    the entry as raw if the comment stands inside its value. Return the comments above the first
    entry, which belong to none. ``entries`` are in file order.

    A comment with a line of its own belongs to the next entry, or below an earlier one if it is
    indented more than the next.
    """
    head: list[Comment] = []
    starts = [entry.start.index for entry in entries]
    for comment in comments:
        at = bisect_right(starts, comment.index)
        if not at:
            head.append(comment)
            continue
        last, after = entries[at - 1], entries[at] if at < len(entries) else None
        is_leaf = not isinstance(last.value, yaml.CollectionNode) or bool(last.value.flow_style)
        if is_leaf and comment.index < last.value.start_mark.index:
            last.above.append(comment)
        elif is_leaf and comment.index < last.value.end_mark.index:
            last.is_raw = True
        elif comment.gap is not None and last.trailing is None:
            last.trailing = comment
        elif after is not None and comment.column <= after.start.column:
            after.above.append(comment)
        else:
            before = reversed(entries[:at])
            inside = (entry for entry in before if entry.start.column <= comment.column)
            next(inside, entries[0]).below.append(comment)
    return head
