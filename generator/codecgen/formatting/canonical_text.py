"""Write schema files in the canonical form. Decision 23 in docs/decisions says why no YAML library does it."""

from __future__ import annotations

import re
import textwrap
from collections import deque
from collections.abc import Iterator, Sequence

import yaml

from codecgen.formatting.comments import (
    Comment,
    Entry,
    Lines,
    attach,
    entries_of,
    find_comments,
)
from codecgen.formatting.key_order import NESTED, kind_of, sort_key
from codecgen.schema import grammar, key_types

WIDTH = 150
_FOLDED = 120
_TEXTS = ("doc", "notes")


class FormatError(Exception):
    """A file cannot be brought into the canonical form without a change of its meaning."""


def format_text(text: str) -> str:
    """Return a schema file, which codecgen reads without a diagnostic, in the canonical form; a
    file without documents unchanged. Raise FormatError if the result would not mean the same or
    would lack a comment, if a line begins with ``%``, or if a text of several lines cannot be
    reformatted. Files with diagnostics are for the caller to exclude: they can raise yaml.YAMLError
    (no YAML) or AssertionError (a scalar as document).
    """
    if re.search(r"^%", text, re.MULTILINE):
        raise FormatError(
            "the file has a line that begins with %, which format cannot keep: remove the line"
        )
    nodes = list(yaml.compose_all(text, yaml.SafeLoader))
    if not nodes:
        return text
    starts = [
        event.start_mark.index
        for event in yaml.parse(text, yaml.SafeLoader)
        if isinstance(event, yaml.DocumentStartEvent) and event.start_mark is not None
    ]
    comments = find_comments(text, nodes)
    parts = []
    for i, node in enumerate(nodes):
        begin = starts[i] if i else 0
        end = starts[i + 1] if i + 1 < len(starts) else len(text)
        mine = [comment for comment in comments if begin <= comment.index < end]
        parts.append("\n".join(_Document(text, node, mine).lines()) + "\n")
    out = "\n---\n".join(parts)
    _check_same(text, out)
    return out


class _Document:
    """Writes one YAML document of a schema file in the canonical form."""

    def __init__(self, text: str, node: yaml.Node, comments: Sequence[Comment]) -> None:
        self.text = text
        self.node = node
        entries = list(entries_of(node))
        self.head = attach(comments, entries)
        lines = Lines(text)
        for entry in entries:
            entry.after_blank = lines.follows_blank(entry.start.index)
        self.entries = {id(entry.value): entry for entry in entries}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the document without line feeds, with the comments above its first
        entry first. A blank line below these comments stays. Raise FormatError if a text in it
        cannot be reformatted.
        """
        for i, comment in enumerate(self.head):
            yield from _comment_lines(comment, 0, is_first=not i)
        first = next(iter(self.entries.values()), None)
        if self.head and first is not None and first.after_blank:
            yield ""
        yield from self.collection(self.node, _document_kind(self.node), 0)

    def collection(self, node: yaml.Node, kind: key_types.Kind, indent: int) -> Iterator[str]:
        """Yield the lines of a mapping or a sequence in block style, indented by ``indent`` blanks:
        its entries in canonical order, each with its comments. Blank lines above an entry or
        comment become one, and none at the start. Raise FormatError if a text in it cannot be
        reformatted.
        """
        is_first = True
        for entry, inner in self.ordered(node, kind, indent):
            for comment in entry.above:
                yield from _comment_lines(comment, indent, is_first=is_first)
                is_first = False
            if entry.after_blank and not is_first:
                yield ""
            is_first = False
            yield from self.entry(entry, inner, indent)
            for comment in entry.below:
                yield from _comment_lines(comment, indent, is_first=False)

    def ordered(
        self, node: yaml.Node, kind: key_types.Kind, indent: int
    ) -> list[tuple[Entry, key_types.Kind]]:
        """Return the entries of a mapping or sequence in canonical order, each with the kind of its
        value. Sequences, and mappings whose key order has a meaning, keep their order. Some keys,
        such as ``members``, come last if their value takes several lines. Raise FormatError if such
        a value has a text that cannot be joined.
        """
        if isinstance(node, yaml.SequenceNode):
            item = _item_kind(kind)
            return [(self.entry_of(None, part), item) for part in node.value]
        assert isinstance(node, yaml.MappingNode)
        form = _form_of(kind, node)
        found = [
            (self.entry_of(key, value), _value_kind(kind, node, key.value))
            for key, value in node.value
        ]
        if form is None:
            return found

        def sort_position(
            pair: tuple[Entry, key_types.Kind],
        ) -> tuple[bool, tuple[int, int]]:
            """Return where an entry stands: in the order of its form, nested blocks of lines last."""
            entry, inner = pair
            assert entry.key is not None
            name = entry.key.value
            is_last = name in NESTED.get(form, ()) and self.takes_lines(entry, inner, indent)
            return is_last, sort_key(form, name)

        return sorted(found, key=sort_position)

    def entry_of(self, key: yaml.ScalarNode | None, value: yaml.Node) -> Entry:
        """Return the entry of a value: that with its comments, or a new one if it stands in braces."""
        return self.entries.get(id(value)) or Entry(key, value)

    def takes_lines(self, entry: Entry, kind: key_types.Kind, indent: int) -> bool:
        """Return whether the value of an entry is a mapping that is written on several lines: one
        in block style, or one in braces that does not fit on a line. False for scalars and
        sequences. Raise FormatError if a text in braces cannot be joined.
        """
        value = entry.value
        if not isinstance(value, yaml.MappingNode):
            return False
        return not value.flow_style or not self.fits_on_line(entry, kind, indent)

    def fits_on_line(self, entry: Entry, kind: key_types.Kind, indent: int) -> bool:
        """Return whether an entry in flow style fits on one line."""
        line = f"{self.lead(entry)} {self.flow(entry.value, kind)}"
        return indent + len(line) <= WIDTH

    def entry(self, entry: Entry, kind: key_types.Kind, indent: int) -> Iterator[str]:
        """Yield the lines of an entry without the comments above and below it. The comment beside
        it ends the first line, or the last one of a value in braces or brackets. Raise FormatError
        if a text in it cannot be reformatted.
        """
        blanks, lead = " " * indent, self.lead(entry)
        trailing = (
            "" if entry.trailing is None else f"{entry.trailing.gap or '  '}{entry.trailing.text}"
        )
        value = entry.value
        if isinstance(value, yaml.ScalarNode):
            first, *others = self.scalar(entry, indent)
            yield f"{blanks}{lead} {first}".rstrip() + trailing
            yield from others
            return
        assert isinstance(value, yaml.CollectionNode)
        if entry.is_raw:
            *others, last = f"{blanks}{lead} {self.raw(value)}".split("\n")
            yield from (line.rstrip() for line in others)
            yield last + trailing
        elif not value.value or (value.flow_style and self.fits_on_line(entry, kind, indent)):
            yield f"{blanks}{lead} {self.flow(value, kind)}{trailing}"
        elif value.flow_style and _has_scalars_only(value):
            items = [self.flow(item, kind) for item in value.value]
            *others, last = _fill(items, f"{blanks}{lead} ", indent + 2)
            yield from others
            yield last + trailing
        elif entry.key is None:
            lines = deque(self.collection(value, kind, indent + 2))
            while lines[0].lstrip().startswith("#"):
                yield f"{blanks}{lines.popleft().lstrip()}"
            yield f"{blanks}- {lines.popleft().lstrip()}{trailing}"
            yield from lines
        else:
            yield f"{blanks}{lead}{trailing}"
            yield from self.collection(value, kind, indent + 2)

    def scalar(self, entry: Entry, indent: int) -> list[str]:
        """Return the lines of a scalar: the first without, the others with indentation. A block
        keeps its lines. Other scalars become one line; a ``doc`` or ``notes`` that is too long for
        it is wrapped after ``>``, if it then means the same. Raise FormatError if a text cannot be
        indented or joined.
        """
        node = entry.value
        assert isinstance(node, yaml.ScalarNode)
        raw = self.raw(node)
        if node.style in ("|", ">"):
            return _block_lines(raw, indent)
        one = raw if "\n" not in raw else _join_lines(node, raw)
        name = "" if entry.key is None else entry.key.value
        is_long = indent + len(name) + 2 + len(one) > WIDTH
        if is_long and name in _TEXTS and _folds(node.value):
            blanks = " " * (indent + 2)
            lines = textwrap.wrap(
                node.value,
                _FOLDED,
                initial_indent=blanks,
                subsequent_indent=blanks,
                break_long_words=False,
                break_on_hyphens=False,
            )
            return [">", *lines]
        first, *others = one.split("\n")
        return [first, *others]

    def flow(self, node: yaml.Node, kind: key_types.Kind) -> str:
        """Return a node on one line, however long: collections in braces or brackets with keys in
        canonical order, scalars as the file has them, joined if they have several lines. Raise
        FormatError if a scalar cannot be joined.
        """
        if isinstance(node, yaml.ScalarNode):
            raw = self.raw(node)
            return raw if "\n" not in raw else _join_lines(node, raw)
        if isinstance(node, yaml.SequenceNode):
            item = _item_kind(kind)
            return "[" + ", ".join(self.flow(part, item) for part in node.value) + "]"
        assert isinstance(node, yaml.MappingNode)
        form = _form_of(kind, node)
        pairs = list(node.value)
        if form is not None:
            pairs.sort(key=lambda pair: sort_key(form, pair[0].value))
        inner = [
            f"{self.raw(key)}: {self.flow(value, _value_kind(kind, node, key.value))}"
            for key, value in pairs
        ]
        return "{" + ", ".join(inner) + "}"

    def lead(self, entry: Entry) -> str:
        """Return what stands before the value of an entry: the key with its colon, or a dash."""
        return "-" if entry.key is None else f"{self.raw(entry.key)}:"

    def raw(self, node: yaml.Node) -> str:
        """Return a node as the file has it."""
        return self.text[node.start_mark.index : node.end_mark.index]


def _comment_lines(comment: Comment, indent: int, *, is_first: bool) -> Iterator[str]:
    """Yield the lines of a comment, after a blank line if it had one and is not the first."""
    if comment.after_blank and not is_first:
        yield ""
    yield f"{' ' * indent}{comment.text}"


def _block_lines(raw: str, indent: int) -> list[str]:
    """Return the lines of a text after ``|`` or ``>`` with another indentation, the first with that
    sign. Raise FormatError if the sign has an indentation of its own or keeps blank lines at the
    end (``|2``, ``|+``).
    """
    header, *lines = raw.rstrip("\n").split("\n")
    if re.search(r"[\d+]", header.partition("#")[0]):
        message = f"the text after {header!r} has its own indentation or blank lines at its end"
        raise FormatError(f"{message} and cannot be reformatted")
    own = next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), 0)
    blanks = " " * (indent + 2)
    return [header.rstrip(), *(f"{blanks}{line[own:]}" if line[own:] else "" for line in lines)]


def _join_lines(node: yaml.ScalarNode, raw: str) -> str:
    """Return a scalar of several lines on one line. Raise FormatError if it has blank lines or
    escaped line ends.
    """
    lines = [line.strip() for line in raw.split("\n")]
    if not all(lines) or (node.style == '"' and any(line.endswith("\\") for line in lines)):
        message = f"the text that begins with {lines[0]!r} has blank lines or escaped line ends"
        raise FormatError(f"{message} and cannot be reformatted; write it as a block after |")
    return " ".join(lines)


def _folds(text: str) -> bool:
    """Return whether text means the same if it is wrapped after ``>``."""
    return text.isprintable() and text == " ".join(text.split())


def _has_scalars_only(node: yaml.Node) -> bool:
    """Return whether a node is a sequence without collections in it."""
    return isinstance(node, yaml.SequenceNode) and all(
        isinstance(part, yaml.ScalarNode) for part in node.value
    )


def _fill(items: Sequence[str], lead: str, indent: int) -> list[str]:
    """Return the lines of ``items``, at least one, in brackets: the first after ``lead``, the
    others after ``indent`` blanks. A line has at most ``_FOLDED`` characters unless a single item
    is longer.
    """
    lines, line = [], lead
    for i, item in enumerate(items):
        word = ("[" if not i else "") + item + ("]" if i == len(items) - 1 else ",")
        if i and len(line) + len(word) > _FOLDED:
            lines.append(line.rstrip())
            line = " " * indent
        line += word + " "
    return [*lines, line.rstrip()]


# ------------------------------------------------------------ kinds


def _document_kind(node: yaml.Node) -> key_types.Kind:
    """Return the kind of a document."""
    keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
    found = next((kind for kind in grammar.DOCUMENTS if kind in keys), "manifest")
    return key_types.Use(found)


def _options(kind: key_types.Kind) -> tuple[key_types.Kind, ...]:
    """Return the alternatives of a kind."""
    return kind.kinds if isinstance(kind, key_types.Either) else (kind,)


def _mapping_kind(kind: key_types.Kind, node: yaml.MappingNode) -> key_types.Kind:
    """Return the kind of a mapping among the alternatives of ``kind``, or of the items of a list: a
    mapping by version if its first key begins with a digit, else a form with known keys. Without
    such an alternative return the first that is a mapping, or ``Anything``.
    """
    keys = [key.value for key, _ in node.value]
    by_version = bool(keys) and keys[0][:1].isdecimal()
    first = key_types.ByVersion if by_version else key_types.Use
    options = [o.item if isinstance(o, key_types.ListOf) else o for o in _options(kind)]
    options = [one for option in options for one in _options(option)]
    maps: list[key_types.Kind] = [
        o for o in options if isinstance(o, key_types.Use | key_types.MapOf | key_types.ByVersion)
    ]
    return next((o for o in maps if isinstance(o, first)), (maps or [key_types.Anything()])[0])


def _form_of(kind: key_types.Kind, node: yaml.MappingNode) -> str | None:
    """Return the name of the form (known keys, in the grammar) of a mapping. Return None if the
    order of its keys has a meaning: it is no form, or ``since``.
    """
    found = _mapping_kind(kind, node)
    if not isinstance(found, key_types.Use) or found.form == "since":
        return None
    return found.form


def _value_kind(kind: key_types.Kind, node: yaml.MappingNode, key: str) -> key_types.Kind:
    """Return the kind of the value under ``key`` in a mapping of kind ``kind``: that of the form's
    key, or that of all values of a map. Return ``Anything`` for an unknown key and for a mapping
    without known kind.
    """
    found = _mapping_kind(kind, node)
    if isinstance(found, key_types.Use):
        return kind_of(found.form, key)
    if isinstance(found, key_types.MapOf | key_types.ByVersion):
        return found.value
    return key_types.Anything()


def _item_kind(kind: key_types.Kind) -> key_types.Kind:
    """Return the kind of the items of a sequence: those of the first list among the alternatives of
    ``kind``, or ``Anything`` if there is none.
    """
    for option in _options(kind):
        if isinstance(option, key_types.ListOf):
            return option.item
    return key_types.Anything()


# ------------------------------------------------------------ the law


def _check_same(before: str, after: str) -> None:
    """Raise FormatError unless two YAML texts have the same meaning and the same comments, wherever
    the comments stand and whatever the order of keys without a meaning is. Raise yaml.YAMLError if
    a text is not YAML.
    """
    old, new = _meaning(before), _meaning(after)
    if old != new:
        raise FormatError(
            "the formatted file would not mean the same, and the file is unchanged: please report it as a defect of codecgen"
        )


def _meaning(text: str) -> object:
    """Return a form that is equal for texts with the same meaning and comments: that of each
    document, and the sorted texts of the comments. The order of keys of a form and the places of
    comments do not count. Raise yaml.YAMLError if the text is not YAML.
    """
    nodes = list(yaml.compose_all(text, yaml.SafeLoader))
    comments = sorted(comment.text for comment in find_comments(text, nodes))
    return [_meaning_of(node, _document_kind(node), "") for node in nodes], comments


def _meaning_of(node: yaml.Node, kind: key_types.Kind, key: str) -> object:
    """Return a comparable form of a node: (value, whether it is plain) for a scalar, a list for a
    sequence, a dict for a mapping. If the order of the mapping's keys has a meaning, the form is a
    tuple of pairs. The text of a ``doc`` or ``notes`` (``key``) is its words, joined by single
    blanks.
    """
    if isinstance(node, yaml.ScalarNode):
        if key in _TEXTS and isinstance(kind, key_types.Text):
            return " ".join(node.value.split())
        return node.value, node.style is None
    if isinstance(node, yaml.SequenceNode):
        return [_meaning_of(item, _item_kind(kind), "") for item in node.value]
    assert isinstance(node, yaml.MappingNode)
    pairs = [
        (name.value, _meaning_of(value, _value_kind(kind, node, name.value), name.value))
        for name, value in node.value
    ]
    return tuple(pairs) if _form_of(kind, node) is None else dict(pairs)
