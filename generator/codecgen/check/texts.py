"""Check texts: every line has an end, counts and rules refer to earlier lines, and tolerances have an effect."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.check.expressions import check_kind, check_type
from codecgen.check.names import CONTAINER, EXPRESSION, check_word
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan.scope import Scope
from codecgen.plan.texts import iterate_value_scopes
from codecgen.plan.types import INT
from codecgen.runtime.properties_file import COMMENTS, ORDER, UNKNOWN
from codecgen.runtime.text_values import BLANKS
from codecgen.schema.lookup import integer_range
from codecgen.schema.model import Model
from codecgen.schema.texts import (
    LINES_ONLY,
    PROPERTIES_ONLY,
    TEXT_TOLERANCES,
    EachLine,
    Text,
    TextValue,
)
from codecgen.spans import hint, place

BESIDE = frozenset([UNKNOWN, COMMENTS, ORDER])
"""What a parse of properties gives beside the keys."""


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each mistake in a text (the format of a file of lines or properties):
    in names, lines, keys, tolerances, constants, conditions and defaults. Examples are only checked
    for equal names. Each id is reported once per place in a text.
    """
    for text in model.texts.values():
        yield from unique(_check_text(text, model))


def _check_text(text: Text, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a text (the format of a file of lines or properties) has neither lines
    nor keys; nothing else is checked then. Otherwise yield those about a pointless
    ``may_be_empty``, two examples of one name, and bad names, lines, keys, tolerances, constants or
    conditions.
    """
    if not text.lines and not text.properties:
        yield Diagnostic("C017", f'"{text.name}" has no lines and no keys', text.span)
        return
    if text.may_be_empty and all(isinstance(line, EachLine) for line in text.lines):
        message = "all lines are optional, so the text may be empty without `may_be_empty`"
        where = place(text, "may_be_empty")
        yield Diagnostic("C011", message, where, help="remove `may_be_empty`")
    yield from _check_names(text)
    yield from _check_lines(text)
    yield from _check_keys(text)
    yield from _check_tolerances(text)
    for _, value, ruled, built in iterate_value_scopes(text, model):
        yield from _check_numbers(value)
        yield from _check_rules(value, ruled, built)
    names: dict[str, Span] = {}
    for example in text.examples:
        if example.name in names:
            message = f'two examples are called "{example.name}"'
            help = f"the other one is at {names[example.name]}"
            yield Diagnostic("C008", message, example.span, help=help)
        names.setdefault(example.name, example.span)


def _check_names(text: Text) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each line, value of a line or property whose name is reserved, too
    long, or used by generated code or expressions.
    """
    taken = CONTAINER | EXPRESSION
    for line in text.lines:
        yield from check_word(line.name, line.span, taken)
        for value in line.values if isinstance(line, EachLine) else ():
            yield from check_word(value.name, value.span, taken)
    for value in text.properties:
        kept = "to keep the key in the file"
        yield from check_word(value.name, value.span, taken | BESIDE, field=True, kept=kept)


def _check_lines(text: Text) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a label or separator is invalid or the label contains the separator, if
    a line counts lines that do not exist, do not repeat, come earlier or are counted already, or if
    repeated lines are ambiguous.
    """
    spans = {line.name: line.span for line in text.lines}
    counted: dict[str, str] = {}
    for i, line in enumerate(text.lines):
        if isinstance(line, EachLine):
            yield from _check_repeated_lines(line, i, text)
        elif line.label is not None:
            yield from _check_piece(line, "label", line.label)
            yield from _check_piece(line, "separator", line.separator)
            if line.separator and line.separator in line.label:
                message = f'the separator stands in the label of "{line.name}": it would end there'
                help = "write a separator that the label does not have"
                yield Diagnostic("C031", message, place(line, "label"), help=help)
        if isinstance(line, EachLine) or line.counts is None:
            continue
        where = place(line, "counts")
        found = next((other for other in text.lines if other.name == line.counts), None)
        if found is None:
            help = hint(line.counts, spans)
            yield Diagnostic("C014", f'no line is called "{line.counts}"', where, help=help)
        elif not isinstance(found, EachLine):
            message = f'"{found.name}" is one line: what is counted has `each`'
            help = (
                f'name lines with `each`, or take "counts" out; "{found.name}" is at {found.span}'
            )
            yield Diagnostic("C016", message, where, help=help)
        elif text.lines.index(found) < i:
            message = f'"{found.name}" stands before the line that counts it'
            help = f'move "{line.name}" in front of "{found.name}" ({found.span})'
            yield Diagnostic("C016", message, where, help=help)
        elif line.counts in counted:
            message = f'"{found.name}" is counted by "{counted[line.counts]}" already'
            yield Diagnostic("C016", message, where, help='take "counts" out of one of the two')
        else:
            counted[line.counts] = line.name


def _check_repeated_lines(line: EachLine, index: int, text: Text) -> Iterator[Diagnostic]:
    """Yield a diagnostic if repeated lines are neither last nor counted, if they have no values,
    several values without a separator, a value up to the end of the line before another value, or a
    value that can contain the separator. Separators with a blank are always unambiguous.
    """
    if line.counted_by is None and index + 1 < len(text.lines):
        message = f'the end of "{line.name}" is not known: other lines follow it, and no line before it counts it'
        yield Diagnostic("C031", message, line.span, help=f"add a line with `counts: {line.name}`")
    if not line.values:
        yield Diagnostic("C017", f'"{line.name}" has no values', place(line, "each"))
    if len(line.values) > 1 and not line.separator:
        message = f'nothing separates the values of "{line.name}"'
        yield Diagnostic(
            "C031", message, line.span, help='add a separator, perhaps `separator: " "`'
        )
    for value in line.values[:-1]:
        if value.of == "rest":
            message = f'"{value.name}" takes the rest of the line, so no value can follow'
            yield Diagnostic("C031", message, place(value, "string"), help="write `string: word`")
    yield from _check_piece(line, "separator", line.separator)
    if not line.separator or set(line.separator) & set(BLANKS):
        return  # values hold no blank, so the first one is that of a separator
    for value in line.values:
        if value.of != "rest" and _can_contain(value, line.separator):
            message = f'"{value.name}" may hold the separator'
            where = place(line, "separator")
            yield Diagnostic("C031", message, where, help="separate the values by a blank")


def _can_contain(value: TextValue, separator: str) -> bool:
    """Return whether a value, written as text, can contain ``separator``: always for strings; for
    decimals if it consists of digits, ``+`` and ``-``; for other kinds of digits, ``-``, ``_`` and
    ``=``, and for uuids also ASCII letters.
    """
    if value.kind == "string":
        return True
    others = "+-" if value.kind == "decimal" else "-_="
    letters = value.kind == "uuid"
    return all(
        c.isascii() and (c.isdecimal() or c in others or (letters and c.isalpha()))
        for c in separator
    )


def _check_piece(line: TextValue | EachLine, key: str, text: str) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``text``, the label or separator under ``key``, has a line break or
    another character that is not printable; tabs are allowed.
    """
    if any(not c.isprintable() and c != "\t" for c in text):
        message = f"a {key} must be one line of printable characters"
        yield Diagnostic("C017", message, place(line, key))


def _check_keys(text: Text) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each property whose key (its spelling, or else its name) an earlier
    property has.
    """
    keys: dict[str, Span] = {}
    for value in text.properties:
        if value.key in keys:
            message = f'the key "{value.key}" is declared twice'
            where = place(value, "spelled")
            yield Diagnostic("C008", message, where, help=f"first at {keys[value.key]}")
        keys.setdefault(value.key, value.span)


def _check_tolerances(text: Text) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each tolerance in ``accepts`` of a text, line or property that cannot
    apply to any of its values, or that is only for the other kind of text (lines or properties).
    Lines do not repeat tolerances of their text.
    """
    for tolerance in sorted(text.accepts):
        things = [*text.lines, *text.properties]
        elsewhere = text.properties and tolerance == "invalid_utf8"  # in other keys and comments
        if (
            not any(_applies(tolerance, thing) for thing in things) and not elsewhere
        ) or tolerance in (PROPERTIES_ONLY if text.lines else LINES_ONLY):
            yield _no_effect(tolerance, f'"{text.name}"', place(text, "accepts"))
    for line in (*text.lines, *text.properties):
        for tolerance in sorted(line.accepts - text.accepts):
            if not _applies(tolerance, line):
                yield _no_effect(tolerance, f'"{line.name}"', place(line, "accepts"))


def _no_effect(tolerance: str, what: str, where: Span) -> Diagnostic:
    """Return the diagnostic C029 that ``what`` has nothing to which ``tolerance`` could
    apply. Its help says what the tolerance allows.
    """
    message = f'"{tolerance}" has no effect on {what}'
    return Diagnostic(
        "C029", message, where, help=f"take the word out: it allows {TEXT_TOLERANCES[tolerance]}"
    )


def _applies(tolerance: str, line: TextValue | EachLine) -> bool:
    """Return whether a tolerance can have an effect on a line or value: ``extra_blanks`` with a
    separator, ``any_label`` with a label, ``ends_early`` for a count, ``other_spellings`` for
    values that are no strings, ``invalid_utf8`` for strings and labels. True for all others.
    """
    match tolerance:
        case "extra_blanks":
            return bool(line.separator)
        case "any_label":
            return isinstance(line, TextValue) and line.label is not None
        case "ends_early":
            return isinstance(line, TextValue) and line.counts is not None
        case "other_spellings":
            values = line.values if isinstance(line, EachLine) else (line,)
            return any(value.kind != "string" for value in values)
        case "invalid_utf8":
            if isinstance(line, EachLine):
                return any(value.kind == "string" for value in line.values)
            return line.kind == "string" or line.label is not None
        case _:
            return True


def _check_numbers(value: TextValue) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a constant does not fit the value's integer type, if a value with a
    constant also has ``default`` or ``counts``, or if one with ``counts`` has a ``default``.
    """
    low, high = integer_range(value.of) or (0, 0)
    if value.const is not None and not low <= value.const <= high:
        message = f'{value.const} does not fit "{value.name}": {value.of} is {low}..{high}'
        yield Diagnostic("C017", message, place(value, "const"))
    for key in ("default", "counts"):
        if value.const is not None and key in value.places:
            message = f'"{value.name}" has a constant, so `{key}` has no effect'
            yield Diagnostic("C011", message, place(value, key))
    if value.counts is not None and "default" in value.places:
        message = f'"{value.name}" is worked out by the builder: it needs no default'
        yield Diagnostic("C011", message, place(value, "default"))


def _check_rules(value: TextValue, ruled: Scope, built: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``valid`` and ``refuse`` of a value are valid conditions in the
    scope ``ruled`` and its default is a valid integer expression in the scope ``built``, and one
    for each name newer than the value.
    """
    for key, rule in (("valid", value.valid), ("refuse", value.refuse)):
        if rule is not None:
            yield from check_kind("bool", rule, ruled, f"`{key}`")
    if value.default is not None:
        yield from check_type(value.default, built, INT, f'"{value.name}"')
