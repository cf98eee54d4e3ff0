"""Read nodes into values by the tables of the grammar. What does not fit is reported and left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from codecgen.diagnostics import Diagnostic, Span, did_you_mean
from codecgen.schema import expression, grammar, key_types, other_words
from codecgen.schema.key_types import INTEGER, Declared, LayoutName, is_key
from codecgen.schema.other_words import NAME
from codecgen.schema.scalars import LENGTHS
from codecgen.schema.types import ZERO_TERMINATED, Since, Versions
from codecgen.schema.yaml_tree import Mapping, Node, Scalar, Sequence

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WORD = re.compile(r"\S{1,80}\Z")
_RELEASE = re.compile(r"\d{1,4}(\.\d{1,4}){0,3}\Z", re.ASCII)
_RANGE = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?\Z", re.ASCII)
_BITS = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?\Z", re.ASCII)
_DECLARED = re.compile(r"(?:[a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*\Z")
_LAYOUT = re.compile(r"((?:[a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*)(?:@(\d{1,5}))?\Z", re.ASCII)
_PATH = re.compile(r"\.\.?(/[\w. -]{1,255})*/?\Z")


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the expected kind, and its place."""

    value: object
    span: Span


@dataclass(frozen=True, slots=True)
class Record:
    """A YAML mapping that matches its form: values by key."""

    form: str
    values: dict[str, Value]
    span: Span

    def __getitem__(self, key: str) -> object:
        return self.values[key].value if key in self.values else None

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def at(self, key: str) -> Span:
        """Return the place of the value of a key, or of the record if the key is missing."""
        return self.values[key].span if key in self.values else self.span

    def places(self, *keys: str) -> dict[str, Span]:
        """Return the places of the values of ``keys``, or of all keys if none are named, and of the
        values inside them (``key.inner``, ``key.0``). Missing keys are left out.
        """
        out: dict[str, Span] = {}
        for key in keys or tuple(self.values):
            if key in self.values:
                _add_places(out, key, self.values[key])
        return out

    def text(self, key: str) -> str:
        """Return the text of a key on one line, or ``""`` if it is missing."""
        value = self[key]
        return " ".join(value.split()) if isinstance(value, str) else ""


def _add_places(out: dict[str, Span], path: str, value: Value) -> None:
    """Store in ``out`` the place of a value under ``path``, and of the values inside it under
    ``path.key`` or, for lists, ``path.0``. Values of plain mappings are not entered further.
    """
    out[path] = value.span
    inner = value.value
    if isinstance(inner, Record):
        for key, item in inner.values.items():
            _add_places(out, f"{path}.{key}", item)
    elif isinstance(inner, dict):
        for key, item in inner.items():
            out[f"{path}.{key}"] = item.span
    elif isinstance(inner, tuple) and all(isinstance(item, Value) for item in inner):
        for i, item in enumerate(inner):
            _add_places(out, f"{path}.{i}", item)


@dataclass(frozen=True, slots=True)
class Ranged:
    """Values by version range, in order, with the places of the ranges."""

    parts: tuple[tuple[Versions, Value, Span], ...]


class Reader:
    """Reads YAML nodes by the grammar of the schema language. Diagnostics collect in
    ``diagnostics``.
    """

    def __init__(self, release_line: str | None = None, links: tuple[str, ...] = ()) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.release_line = release_line
        self.links = links
        self.fields: frozenset[str] = frozenset()  # of the layout that is read
        self.given: frozenset[str] = frozenset()  # what it gets from outside
        self.flexible = False
        self.field = ""  # or another key of a mapping from names

    def report(self, code: str, message: str, span: Span, label: str = "", help: str = "") -> None:
        """Append a diagnostic to ``diagnostics``. ``code`` is its id, ``label`` the note at the
        marked text.
        """
        self.diagnostics.append(Diagnostic(code, message, span, label, help))

    def read_record(self, node: Node, form_name: str) -> Record | None:
        """Return a mapping as the record of its form. Return None, with diagnostics, if it is no
        mapping, has unknown, missing or conflicting keys, or a value that does not fit.
        ``form_name`` must be a key of ``grammar.FORMS``. The reader remembers the names of a
        layout's fields and given values for the values inside.
        """
        form = grammar.FORMS[form_name]
        if not isinstance(node, Mapping):
            self.report("C006", f"{_with_article(form_name)} is a mapping", node.span)
            return None
        if form_name == "layout":
            self.fields = key_names(node.get("fields"))
            self.given = key_names(node.get("given"))
            self.flexible = node.get("flexible") is not None
        if form_name == "field":
            mistake = find_field_mistake(self.field, node, self.fields)
            if mistake is not None:
                self.report(mistake[0], mistake[1], mistake[2].span, help=mistake[3])
                return None
        values: dict[str, Value] = {}
        good = True
        for key, child in node.entries:
            spec = form.keys.get(key.text)
            if spec is None:
                hint = other_words.key_help(key.text, form.keys)
                hint = hint or _suggest(key.text, form.keys)
                self.report("C004", f'unknown key "{key.text}"', key.span, "not a key here", hint)
                good = False
                continue
            value = self.read_value(child, spec.kind)
            if value is None:
                good = False
            else:
                values[key.text] = value
        given = {key.text for key, _ in node.entries}
        anchor = node.entries[0][0].span if node.entries else node.span
        for name, spec in form.keys.items():
            if spec.required and name not in given:
                help = (
                    f"add the line `{spec.write}`"
                    if spec.write
                    else f"add `{name}: ..`. {spec.doc}"
                )
                message = f'{_with_article(form_name)} needs the key "{name}"'
                self.report("C005", message, anchor, help=help)
                good = False
        for group in form.one_of:
            present = [name for name in group if name in given]
            if len(present) != 1:
                what = f"this {form_name.replace('_', ' ')}"
                code, message = describe_alternatives(what, group, present)
                help = f"keep one of them: take out {' or '.join(present)}" if present else ""
                if not present:
                    help = f"add the one that says what it is: `{group[0]}: ..`, for example"
                self.report(code, message, anchor, help=help)
                good = False
        for name, needs in form.together.items():
            failed = name in form.keys and name not in values
            if name in given and not failed and not any(need in given for need in needs):
                words = " or ".join(f'"{need}"' for need in needs)
                message = f'"{name}" is only allowed with {words}'
                others = {key for group in form.one_of if given & set(group) for key in group}
                help = f'take out "{name}"'
                if len(needs) == 1 and (needs[0] not in others or name in others):
                    help = f'add "{needs[0]}", or {help}'
                self.report("C011", message, node.get(name).span, help=help)  # type: ignore[union-attr]
                good = False
        return Record(form_name, values, node.span) if good else None

    def read_value(self, node: Node, kind: key_types.Kind) -> Value | None:
        """Return a value of the given kind with its place: a Record, tuple, dict, Ranged, or Python
        scalar; the node itself for kinds that are read later. Return None after a diagnostic if it
        does not fit.
        """
        match kind:
            case key_types.Anything() | key_types.Constant() | key_types.Default():
                return Value(node, node.span)
            case key_types.Use("since"):
                since = self.read_since(node)
                return None if since is None else Value(since, node.span)
            case key_types.Use(form):
                record = self.read_record(node, form)
                return None if record is None else Value(record, node.span)
            case key_types.ListOf(item):
                return self.read_list(node, item)
            case key_types.MapOf():
                return self.read_map(node, kind)
            case key_types.ByVersion(item):
                return self.read_by_version(node, item)
            case key_types.Either(options) if self.is_amount(node, options):
                return self.read_scalar(node, key_types.Amount())
            case key_types.Either(options):
                return self.read_value(node, _pick_kind(node, options))
            case _:
                return self.read_scalar(node, kind)

    def is_amount(self, node: Node, options: tuple[key_types.Kind, ...]) -> bool:
        """Return whether a node is a number that stands elsewhere, if ``options`` allow one: a value
        that the layout is given, or something plus or minus a number.
        """
        if key_types.Amount() not in options or not isinstance(node, Scalar):
            return False
        return node.text in self.given or _AMOUNT.match(node.text) is not None

    def read_list(self, node: Node, kind: key_types.Kind) -> Value | None:
        """Return a ``Value`` that holds a tuple of values of one kind; any node that is not a list
        counts as a list of one. Return None after diagnostics if an item does not fit.
        """
        nodes = node.items if isinstance(node, Sequence) else (node,)
        values = [self.read_value(item, kind) for item in nodes]
        if any(value is None for value in values):
            return None
        return Value(tuple(values), node.span)

    def read_map(self, node: Node, kind: key_types.MapOf) -> Value | None:
        """Return a ``Value`` that holds a dict from each name to a ``Value`` of its (key node,
        value) pair. Return None after a diagnostic if ``node`` is no mapping, or a name or value is
        invalid. ``kind`` says which names and values are valid.
        """
        if not isinstance(node, Mapping):
            help = list_help(node) if isinstance(node, Sequence) else ""
            self.report("C006", "a mapping is expected here", node.span, help=help)
            return None
        out: dict[str, Value] = {}
        good = True
        for key, child in node.entries:
            if not is_key(key.text, kind):
                help = other_words.cases_help(key.text) if kind.ranges else ""
                help = help or other_words.name_help(key.text) or _NAME_HELP
                self.report("C007", f"{key.text!r} is not a name", key.span, help=help)
                good = False
                continue
            self.field = key.text
            value = self.read_value(child, kind.value)
            if value is None:
                good = False
            else:
                out[key.text] = Value((key, value), key.span)
        return Value(out, node.span) if good else None

    def read_by_version(self, node: Node, kind: key_types.Kind) -> Value | None:
        """Return a ``Value`` that holds a Ranged: values of ``kind`` by version range, as written.
        Return None after a diagnostic if ``node`` is no mapping or empty, or a range or value is
        invalid. Overlaps are not checked.
        """
        if not isinstance(node, Mapping) or not node.entries:
            self.report("C006", "a mapping from versions is expected here", node.span)
            return None
        parts = []
        for key, child in node.entries:
            versions = self.read_value(key, key_types.Range())
            value = self.read_value(child, kind)
            if versions is not None and value is not None:
                assert isinstance(versions.value, Versions)
                parts.append((versions.value, value, key.span))
        good = len(parts) == len(node.entries)
        return Value(Ranged(tuple(parts)), node.span) if good else None

    def read_scalar(self, node: Node, kind: key_types.Kind) -> Value | None:
        """Return a scalar as a Python value of the given kind: str, int, bool, bytes, Versions or
        an Expression. Bits, layout names and amounts are pairs: (lowest, highest), (name, version
        or None), (field, what is added to it). Return None after a diagnostic if it does not fit.
        Numbers and booleans must not be quoted.
        """
        if not isinstance(node, Scalar):
            self.report("C006", f"{key_types.kind_words(kind)} is expected here", node.span)
            return None
        text = node.text.strip()
        value: object = None
        code, help = "C006", ""
        match kind:
            case key_types.Text(is_prose):
                value = None if is_prose and _CONTROL.search(node.text) else node.text
            case key_types.Name():
                value = text if NAME.match(text) else None
                code, help = "C007", other_words.name_help(text) or _NAME_HELP
            case key_types.Declared():
                value = text if _DECLARED.match(text) else None
                code, help = "C007", other_words.name_help(text) or _NAME_HELP
            case key_types.Directory():
                value = text if NAME.match(text) or _PATH.match(text) else None
                help = "write the name of an installed package, or a path that begins with ../"
            case key_types.Word():
                value = text if _WORD.match(text) else None
            case key_types.Integer():
                value = parse_integer(text) if node.plain else None
            case key_types.Boolean():
                value = {"true": True, "false": False}.get(text) if node.plain else None
                help = other_words.boolean_help(text)
            case key_types.OneOf(words):
                value = text if text in words else None
                code = "C013" if "i8" in words else "C006"
                if text in kind.flexible and not self.flexible:
                    value = None
                help = kind.help(text) or other_words.word_help(text, words)
                help = help or _suggest(text, words, is_listed=kind.is_short)
            case key_types.Amount():
                amount = _AMOUNT.match(text)
                value = (text, 0)
                if amount is not None:
                    value = (amount[1], int(amount[3]) if amount[2] == "+" else -int(amount[3]))
            case key_types.Range():
                value, code = _parse_range(text), "C010"
                help = other_words.versions_help(text) or "write 1, 0-2 or 1+"
            case key_types.Bits():
                value = _parse_bits(text)
                help = other_words.bits_help(text) or "write 3 or 0-2"
            case key_types.LayoutName():
                found = _LAYOUT.match(text)
                value = (found[1], None if found[2] is None else int(found[2])) if found else None
                code, help = "C007", "write the name of a layout, or name@version"
                help = other_words.name_help(text) or help
            case key_types.Release():
                value = text if _RELEASE.match(text) else None
            case key_types.Hex():
                value, help = parse_hex(text), "two digits are one byte"
            case key_types.Code():
                return self.read_code(node)
        if value is None:
            self.report(
                code,
                f"{key_types.kind_words(kind)} is expected, not {_quote_short(text)}",
                node.span,
                help=help,
            )
            return None
        return Value(value, node.span)

    def read_code(self, node: Scalar, help: str = "") -> Value | None:
        """Return a ``Value`` that holds the parsed expression. Return None after a diagnostic C009
        if it has a syntax error; its place is the wrong token if the text is on one line. ``help``
        is that of errors without their own.
        """
        span = node.span
        try:
            parsed = expression.parse(node.text, span.file, span.line, span.column)
        except expression.ExpressionError as error:
            place = span
            quotes = 0 if node.plain else 1
            whole = span.column + len(node.text) + 2 * quotes == span.end_column
            if whole and not node.block and "\n" not in node.text:
                start = span.column + quotes + error.column
                place = Span(span.file, span.line, start, start + error.width)
            self.report("C009", error.reason, place, help=error.help or help)
            return None
        return Value(parsed, span)

    def read_since(self, node: Node) -> Since | None:
        """Return a Since: a release of the manifest's release line and references to linked
        documents. None of them is required. Return None after a diagnostic if ``node`` is no
        mapping, a key is neither, or a value is invalid.
        """
        if not isinstance(node, Mapping):
            message = "a mapping with a release and documents is expected here"
            line = self.release_line or "RELEASE_LINE"
            self.report("C006", message, node.span, help=f"write `since: {{{line}: RELEASE}}`")
            return None
        release: str | None = None
        references: list[tuple[str, tuple[int, ...]]] = []
        place = node.span
        good = True
        for key, child in node.entries:
            if key.text == self.release_line and self.release_line is not None:
                value = self.read_value(child, key_types.Release())
                release = str(value.value) if value else None
                place = child.span
                good = good and value is not None
            elif key.text in self.links:
                numbers = self.read_list(child, key_types.Integer())
                if numbers is None:
                    good = False
                else:
                    references.append((key.text, tuple(_iterate_items(numbers))))
            else:
                known = [self.release_line, *self.links] if self.release_line else list(self.links)
                hint = did_you_mean(key.text, known) or (
                    "the keys are the `release_line` and the `links` of the manifest: "
                    + (", ".join(known) or "it has none")
                )
                self.report("C004", f'unknown key "{key.text}"', key.span, help=hint)
                good = False
        return Since(release, tuple(references), place) if good else None


_AMOUNT = re.compile(r"([a-z][a-z0-9_]*) *([+-]) *([0-9]{1,9})\Z", re.ASCII)
_PRODUCT = re.compile(
    r"(?:([a-z][a-z0-9_.]*) *[*/%] *[0-9]+|[0-9]+ *\* *([a-z][a-z0-9_.]*))\Z", re.ASCII
)

_NAME_HELP = "names are lower-case letters, digits and _, and begin with a letter"


def _suggest(text: str, words: Iterable[str], *, is_listed: bool = False) -> str:
    """Return the help for an unknown word: the closest of ``words`` if one is close, else the list
    of all, or ``""`` if the message lists them already (``is_listed``).
    """
    listed = "" if is_listed else f"known here: {', '.join(words)}"
    return did_you_mean(text, words) or listed


def _iterate_items(value: Value) -> Iterator[int]:
    """Yield the items of a list value."""
    assert isinstance(value.value, tuple)
    for item in value.value:
        yield item.value


def _pick_kind(node: Node, options: tuple[key_types.Kind, ...]) -> key_types.Kind:
    """Return the alternative in ``options`` that fits the shape of a node, so that diagnostics are
    about that one. For scalars that fit none exactly, prefer names, expressions and text; otherwise
    return the first option.
    """
    maps = key_types.Use | key_types.MapOf | key_types.ByVersion
    if isinstance(node, Mapping):
        wanted = key_types.ByVersion if node.has_numbers else key_types.Use
        options = tuple(k for k in options if isinstance(k, wanted)) or options
    for kind in options:
        if isinstance(kind, maps) and isinstance(node, Mapping):
            return kind
        if isinstance(kind, key_types.ListOf) and isinstance(node, Sequence):
            return kind
        if isinstance(node, Scalar):
            if isinstance(kind, key_types.OneOf) and node.text in kind.words:
                return kind
            if isinstance(kind, key_types.Integer) and parse_integer(node.text) is not None:
                return kind
            if isinstance(kind, key_types.Boolean) and node.text in ("true", "false"):
                return kind
    if isinstance(node, Scalar):
        loose = [
            k
            for k in options
            if isinstance(k, LayoutName | Declared | key_types.Code | key_types.Text)
        ]
        plain = [k for k in options if not isinstance(k, maps | key_types.ListOf)]
        return (loose or plain or list(options))[0]
    return options[0]


def parse_integer(text: str) -> int | None:
    """Return the number in at most 20 decimal digits, or at most 16 hexadecimal digits after
    ``0x``, perhaps after ``-``. Return None if ``text`` is something else, blanks included.
    """
    if not INTEGER.match(text):
        return None
    sign = -1 if text.startswith("-") else 1
    return sign * expression.number(text.removeprefix("-"))


def _parse_range(text: str) -> Versions | None:
    """Return a version range (``1``, ``0-2``, ``1+``), or None if ``text`` is not one, descends, or
    has more than five digits in a number.
    """
    found = _RANGE.match(text)
    if not found:
        return None
    low = int(found[1])
    high = None if found[2] else int(found[3]) if found[3] else low
    return Versions(low, high) if high is None or low <= high else None


def _parse_bits(text: str) -> tuple[int, int] | None:
    """Return the lowest and highest bit, both included, of ``3`` or ``0-2``. Return None if
    ``text`` is not such a range, descends, or has more than two digits in a number.
    """
    found = _BITS.match(text)
    if not found:
        return None
    low = int(found[1])
    high = int(found[2]) if found[2] else low
    return (low, high) if low <= high else None


def parse_hex(text: str) -> bytes | None:
    """Return the bytes of hexadecimal digits with optional blanks, or None if there is another
    character or an odd number of digits. Empty text gives ``b""``.
    """
    digits = "".join(text.split())
    if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
        return None
    return bytes.fromhex(digits)


def describe_alternatives(
    what: str, keys: Collection[str], present: Collection[str]
) -> tuple[str, str]:
    """Return (code, message) of a diagnostic about a mapping, called ``what``, that needs exactly
    one of ``keys``: C005 if it has none of them, C011 if it has several (``present``).
    """
    if not present:
        *most, last = keys
        words = f"{', '.join(most)} or {last}"
        return "C005", f"{what} needs one of the keys {words}, and has none of them"
    *most, last = present
    words = f"{', '.join(most)} and {last}"
    return "C011", f"{what} has the keys {words}; only one of them is allowed"


def _quote_short(text: str) -> str:
    """Return ``text`` in quotes, cut to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _with_article(word: str) -> str:
    """Return the name of a form with its article: ``an enum value``."""
    word = word.replace("_", " ")
    return f"an {word}" if word[0] in "aeio" else f"a {word}"


def find_field_mistake(
    name: str, field: Mapping, fields: Collection[str]
) -> tuple[str, str, Node, str] | None:
    """Return (diagnostic id, message, node, help) for a field that states its length or count as
    other schema languages do, such as ``length`` naming a field, or None if it does not. ``fields``
    are the names of all fields of the layout.
    """
    given = {key.text: value for key, value in field.entries}
    fields = set(fields) - {*LENGTHS, "rest", ZERO_TERMINATED}
    counts = given.get("counts")
    if counts is not None and "array" in given and isinstance(counts, Scalar):
        help = f'write `counts: {name}` at "{counts.text}"'
        if counts.text in LENGTHS:
            help = f"write `count: {counts.text}`: the type of the number in front"
        return "C016", "`counts` stands at the number, not at the array", counts, help
    kind = given.get("type")
    if isinstance(kind, Scalar) and kind.text.lower() in (*other_words.TEXTS, *other_words.BYTES):
        ours = "string" if kind.text.lower() in other_words.TEXTS else "bytes"
        length = given.get("length") or given.get("size")
        if isinstance(length, Scalar):
            message = f"a type is expected, not {kind.text!r}"
            return "C013", message, kind, _length_help(name, ours, length.text, fields)
        return None
    for key in ("length", "count", "string", "bytes"):
        value = given.get(key)
        product = _PRODUCT.match(value.text) if isinstance(value, Scalar) else None
        if product is not None and isinstance(value, Scalar):
            counted = product[1] or product[2]
            message = f"{value.text!r} is a product, which the language does not have"
            help = f'let "{counted}" be the number of elements, `counts: {name}`; an element may have several numbers, `array: {{fields: ..}}`'
            if key != "count":
                measures = f"`measures: {{from: {name}, to: {name}}}`"
                help = f"write `{key}: rest`, and {measures} at a field that is the number of bytes"
            return "C013", message, value, help
        if isinstance(value, Scalar) and value.text in fields:
            ours = next((one for one in ("string", "bytes", "array") if one in given), "")
            message = f'a type is expected, not the field "{value.text}"'
            if key == "count" and "array" not in given:
                help = f"write `counts: {value.text}`: the field is the number of its elements"
            elif key == "length" and not ours:
                help = f"write `measures: {{from: {value.text}, to: {value.text}}}`: the field is the length of that range"
            elif key == "count":
                help = f'leave it out, and write `counts: {name}` at "{value.text}"'
            elif ours == "array":
                measures = f"`measures: {{from: {name}, to: {name}}}`"
                help = f'write `until: end`, and at "{value.text}" {measures}'
            elif ours:
                help = _length_help(name, ours, value.text, fields)
            else:
                continue
            return "C013", message, value, help
    ours = next((one for one in ("string", "bytes") if one in given), "")
    length = given.get("length")
    if ours and "array" not in given and isinstance(length, Scalar):
        return (
            "C011",
            '"length" is only allowed with "array"',
            length,
            f"write `{ours}: {length.text}`",
        )
    return None


def _length_help(name: str, ours: str, length: str, fields: Collection[str]) -> str:
    """Return the help on how to state the ``length`` of the field ``name`` under our key ``ours``:
    ``rest`` and a ``measures`` at the length's field if ``length`` is one of ``fields``, else the
    number or type itself.
    """
    if length in fields:
        return f'write `{ours}: rest`, and at "{length}" `measures: {{from: {name}, to: {name}}}`'
    return f"write `{ours}: {length}`"


def list_help(node: Sequence) -> str:
    """Return help for a list that must be a mapping by name, with the ``name`` or ``id`` of its
    first item if it has one.
    """
    first = node.items[0] if node.items else None
    found = first.get("name") or first.get("id") if isinstance(first, Mapping) else None
    if isinstance(found, Scalar):
        return f"write `{found.text}: ..`, without a dash and without a key for the name"
    return "write `name: ..` for each, without a dash"


def key_names(node: Node | None) -> frozenset[str]:
    """Return the keys of a mapping, or an empty set for other nodes."""
    found = node.entries if isinstance(node, Mapping) else ()
    return frozenset(key.text for key, _ in found)
