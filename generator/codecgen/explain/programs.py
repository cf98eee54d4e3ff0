"""Explain read programs and write programs as text, one operation per line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from codecgen.diagnostics import did_you_mean, printable
from codecgen.explain.declarations import UnknownName
from codecgen.explain.terminal import WIDTH, covered_words, range_words
from codecgen.plan import LayoutPlan, Plan, make_plan, nodes, read_ops, write_ops
from codecgen.plan.columns import CasePlan, Leaf, plan_view
from codecgen.plan.nodes import Value, part_of
from codecgen.plan.payloads import Combination, PayloadCase, plan_payloads
from codecgen.plan.read_program import read_program
from codecgen.plan.type_text import amount_words, checksum_words
from codecgen.plan.writable import WriteError
from codecgen.plan.write_ops import Limits
from codecgen.plan.write_program import WriteProgram, is_written, write_program
from codecgen.runtime.nouns import count_noun
from codecgen.schema.expression import data_text
from codecgen.schema.model import Model, View
from codecgen.schema.types import (
    FROM_OUTSIDE,
    ZERO_TERMINATED,
    ArrayType,
    BytesType,
    ChoiceType,
    FieldType,
    ScalarType,
    StructType,
)
from codecgen.schema.uses import within

_VERB, _NAME = 10, 24
"""The widths of the first two columns."""


def explain_program(model: Model, name: str) -> str:
    """Return as text the read programs of a layout's versions (``message``, ``message@0``), the
    write programs of a view, or the rows of a payload view by combination of parts. A view counts
    before a layout of the same name. Raise UnknownName if no layout, version or view has this name,
    also for a text, enum or choice.
    """
    model, name = within(model, name)
    plan = make_plan(model)
    lines: Iterator[str]
    if name in model.views and model.views[name].parts:
        lines = explain_payloads(plan, model.views[name])
    elif name in model.views:
        lines = _explain_writes(plan, model.views[name])
    else:
        lines = _explain_reads(plan, name)
    text = "\n".join(lines)
    return "\n".join(printable(line).rstrip() for line in text.split("\n"))


def _element_words(element: ScalarType | BytesType | ChoiceType) -> str:
    """Return the type of an array element, other than a layout, in words: ``i32``, ``text
    size=i16``, ``one of shape by its kind``.
    """
    if isinstance(element, ScalarType):
        return element.name
    if isinstance(element, ChoiceType):
        return " ".join((f"one of {element.choice}", *_discriminator_words(element)))
    return f"{'text' if element.text else 'bytes'} {_length_words(element)}"


def _discriminator_words(type_: ChoiceType | StructType) -> Iterator[str]:
    """Yield the words about the discriminator, length, null and unknown cases of a choice, then
    about the version expression of a choice or struct, as far as it has them.
    """
    if isinstance(type_, ChoiceType):
        yield f"by {type_.given}" if type_.given is not None else f"by its {type_.by}"
        if type_.length is not None:
            yield f"length={type_.length}"
        if type_.null is not None:
            yield f"null={type_.null}"
        if type_.unknown:
            yield "or bytes"
    if type_.version is not None:
        yield f"version={type_.version}"


def _format_operation(depth: int, verb: str, name: str, *words: str) -> str:
    """Return an operation as one text: verb, name and words in columns, indented by ``depth``. If
    it is longer than ``WIDTH``, wrap it with line feeds inside. Empty words are left out.
    """
    head = "  " * depth + f"{verb:<{_VERB - 1}} "
    head += name if not any(words) else f"{name:<{_NAME - 1}} "
    text = head + " ".join(word for word in words if word)
    if len(text) <= WIDTH:
        return text
    indent = " " * (2 * depth + _VERB + _NAME)
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


# ---------------------------------------------------------------- reading


def _explain_reads(plan: Plan, name: str) -> Iterator[str]:
    """Yield the lines of the read programs of a layout, or of one version (``layout@2``). Raise
    UnknownName, when the first line is read, if there is no such layout or version.
    """
    head, at, version = name.partition("@")
    plans = plan.versions.get(head, ())
    if at:
        plans = tuple(p for p in plans if str(p.version) == version)
    if not plans:
        known = [*plan.model.layouts, *plan.model.views]
        help = did_you_mean(head, known) if head not in plan.versions else ""
        if head in plan.texts:
            help = "a text has none: its lines are what is read and written"
        help = help or "name a layout, a version of it as in message@0, or a view"
        raise UnknownName(f"no program is called {name!r}; {help}")
    for i, layout in enumerate(plans):
        if i:
            yield ""
        heading = f"{layout_title(layout)}, read ({layout.layout.span})"
        if len(heading) > WIDTH:
            yield f"{layout_title(layout)}, read"
            heading = f"  ({layout.layout.span})"
        yield heading
        for op in read_program(plan, layout).ops:
            yield from _read_lines(op, layout, 1)
        for derived in layout.look_ups:
            d = derived.derived
            name = d.name if d.array is None else f"{d.array}.{d.name}"
            yield _format_operation(1, "look up", name, format_value(derived.value))
        for found in layout.rules:
            text = found.rule.text if found.condition is None else format_value(found.condition)
            yield _format_operation(1, "rule", found.rule.about, f"{text} ({found.name})")


def layout_title(layout: LayoutPlan) -> str:
    """Return the name of a layout with its version."""
    return layout.name if layout.version is None else f"{layout.name}@{layout.version}"


def _read_lines(op: read_ops.ReadOp, layout: LayoutPlan, depth: int) -> Iterator[str]:
    """Yield the lines of a read operation, indented by ``depth`` levels, with those of nested
    operations (cases, tags, conditional fields) indented below it. Yield nothing for other objects.
    """
    name = op.length.name if isinstance(op, read_ops.Open | read_ops.Close) else ""
    match op:
        case read_ops.Number(fp, type_):
            yield _format_operation(depth, "number", fp.name, type_)
        case read_ops.Bytes(fp, type_, after):
            follows = (
                f"{count_noun(after, 'byte follows', 'bytes follow')}"
                if type_.length == "rest" and after
                else ""
            )
            yield _format_operation(
                depth, "text" if type_.text else "bytes", fp.name, _length_words(type_), follows
            )
        case read_ops.Elements(fp, type_, element):
            what = (
                layout_title(element)
                if isinstance(element, LayoutPlan)
                else _element_words(element)
            )
            codec = "" if fp.codec is None else f"decompress by {format_value(fp.codec)}"
            yield _format_operation(depth, "loop", fp.name, what, _count_words(type_), codec)
        case read_ops.Padding(fp, multiple):
            yield _format_operation(depth, "padding", fp.name, f"to a multiple of {multiple}")
        case read_ops.Struct(fp, held):
            yield _format_operation(
                depth, "call", fp.name, layout_title(held), _presence_words(fp.field.type)
            )
        case read_ops.Choose(fp, type_, cases, steps):
            what = str(type_.layout) if isinstance(type_, StructType) else f"one of {type_.choice}"
            yield _format_operation(
                depth, "choose", fp.name, what, *_discriminator_words(type_), _presence_words(type_)
            )
            ways = steps or ((),) * len(cases)
            for (number, held), way in zip(cases, ways, strict=True):
                inner_numbers = ", ".join(f"{step.by} {step.number}" for step in way)
                name = "" if number is None else str(number)
                yield _format_operation(depth + 1, "case", name, layout_title(held), inner_numbers)
        case read_ops.Tags(fp, known, other):
            refused = f"not {', '.join(map(str, other))}" if other else ""
            yield _format_operation(depth, "tags", fp.name, "others are passed over", refused)
            for tagged, inner_ops in known:
                yield _format_operation(depth + 1, "tag", tagged.name, str(tagged.field.tag))
                for inner in inner_ops:
                    yield from _read_lines(inner, layout, depth + 2)
        case read_ops.Open(length, first, last, when, _):
            to = "the end" if last is None else last
            asked = "" if when is None else f"if {format_value(when)}"
            own = length.own_bytes or length.field.excess
            less = f" {'-' if own > 0 else '+'} {abs(own)}" if own else ""
            yield _format_operation(
                depth, "open", f"{first.name} to {to}", f"size={length.name}{less}", asked
            )
        case read_ops.Close():
            yield _format_operation(depth, "close", name)
        case read_ops.Mark(checksum, end):
            yield _format_operation(depth, "mark", checksum.name, "ends" if end else "begins")
        case read_ops.Verify(checksum, ahead):
            how = "all that follows" if ahead else covered_words(checksum, layout)
            yield _format_operation(
                depth, "checksum", checksum.name, checksum_words(checksum.field), how
            )
        case read_ops.Require(fp, condition, why):
            yield _format_operation(depth, "require", fp.name, f"{format_value(condition)} ({why})")
        case read_ops.When(fp, condition, then):
            yield _format_operation(depth, "when", fp.name, format_value(condition))
            for inner in then:
                yield from _read_lines(inner, layout, depth + 1)
        case read_ops.Absent(fp):
            yield _format_operation(depth, "absent", fp.name)


def _presence_words(type_: FieldType) -> str:
    """Return the presence number of an optional layout in words, or ``""``."""
    if not isinstance(type_, StructType) or type_.present is None:
        return ""
    return f"present={type_.present} null={type_.null}"


def _length_words(type_: BytesType) -> str:
    """Return the length of bytes or text in words: ``to the end``, ``to a zero byte``, or ``size=``
    with a number, a prefix type or the name of a value from outside. After a number or prefix, add
    ``without zeros at the end`` if padded and ``null=`` if it can be null.
    """
    if type_.length == "rest":
        return "to the end"
    if type_.length == ZERO_TERMINATED:
        return "to a zero byte"
    if type_.length == FROM_OUTSIDE:
        return f"size={type_.sized_by}{amount_words(type_)}"
    words = f"size={type_.length}" + (" without zeros at the end" if type_.padded else "")
    return words if type_.null is None else f"{words} null={type_.null}"


def _count_words(type_: ArrayType) -> str:
    """Return in words how an array ends, ``count=i32 at_least=1 null=-1`` with the parts that it
    has, or ``to the end`` if it has no count, length or end condition.
    """
    count = type_.fixed or type_.count or type_.counted_by
    words = [f"count={count}{amount_words(type_)}"] if count else []
    words += [f"length={type_.length}"] if type_.length else []
    words += [f"until {type_.until}"] if type_.until is not None else []
    words += [] if words else ["to the end"]
    words += [f"at_least={type_.at_least}"] if type_.at_least else []
    words += [f"null={type_.null}"] if type_.null is not None else []
    return " ".join(words)


# ---------------------------------------------------------------- writing


def _explain_writes(plan: Plan, view: View) -> Iterator[str]:
    """Yield the lines of the write programs of a view, one per case. A case without program has one
    line that it is not written or never exists, or two if kernels cannot write it.
    """
    made = plan_view(plan, view)
    yield f"{view.name}, write ({view.span})"
    for case in made.cases:
        yield ""
        if not is_written(case):
            why = "not written" if case.rows.write is None else "never in this version"
            yield f"{_rows_title(case)}: {why}"
            continue
        yield _rows_title(case)
        try:
            written = write_program(plan, made, case)
        except WriteError as error:
            yield _format_operation(1, "refused", error.field.name, f"it is {error.reason}")
            continue
        yield from _write_program_lines(written)


def _rows_title(case: CasePlan) -> str:
    """Return which rows a case of a view has, in words."""
    rows = f"each of {case.array.name}" if case.array is not None else "each one"
    when = "" if case.when is None else f", if {format_value(case.when)}"
    return f"{layout_title(case.entry)}, {rows} a row{when}"


def _write_program_lines(written: WriteProgram) -> Iterator[str]:
    """Yield the operations of a write program, one or more lines each: those of the entry, with
    those of the row indented below ``rows``; or those of the row alone if the row is the entry.
    """
    depth = 1
    if written.around:
        for op in written.around:
            yield from _write_lines(op, written.case.entry, 1)
            if isinstance(op, write_ops.Rows):
                depth = 2
                for inner in written.row:
                    yield from _write_lines(inner, written.case.element, depth)
        return
    for op in written.row:
        yield from _write_lines(op, written.case.entry, depth)


def _write_lines(op: write_ops.WriteOp, layout: LayoutPlan, depth: int) -> Iterator[str]:
    """Yield the lines of a write operation, indented by ``depth`` levels, with bit members and
    operations of list elements indented below it.
    """
    name = op.field.name
    match op:
        case write_ops.Constant(_, type_, value):
            yield _format_operation(depth, "constant", name, f"{type_} = {value}")
        case write_ops.Number(_, type_, value, limits, running):
            mark = "(running)" if running else ""
            yield _format_operation(
                depth,
                "number",
                name,
                f"{type_} = {format_value(value)}",
                _limits_words(limits),
                mark,
            )
        case write_ops.Bits(_, type_, members):
            yield _format_operation(depth, "bits", name, type_)
            for m in members:
                at = format_range(m.bits.low, m.bits.high)
                yield _format_operation(
                    depth + 1,
                    at,
                    m.bits.name,
                    f"= {format_value(m.value)}",
                    _limits_words(m.limits),
                )
        case write_ops.Bytes(_, type_, column):
            verb = "text" if type_.text else "bytes"
            yield _format_operation(
                depth, verb, name, _length_words(type_), f"= {_column_words(column, 'null')}"
            )
        case write_ops.Elements(_, type_, column, held, each):
            of = "" if held is None else layout_title(held)
            yield _format_operation(
                depth, "loop", name, of, _count_words(type_), f"= {_column_words(column, 'none')}"
            )
            for inner in each:
                yield from _write_lines(inner, held or layout, depth + 1)
        case write_ops.Length(_, type_, field_range, ahead):
            where = "in front" if ahead else "later"
            yield _format_operation(
                depth, "length", name, type_, f"of {range_words(field_range, layout)}, {where}"
            )
        case write_ops.Count(_, type_, rows, column):
            of = "of the rows" if rows else f"of {_column_words(column, 'nothing')}"
            yield _format_operation(depth, "count", name, f"{type_} {of}")
        case write_ops.Checksum(field, field_range):
            words = checksum_words(field.field)
            yield _format_operation(
                depth, "checksum", name, words, f"of {range_words(field_range, layout)}, later"
            )
        case write_ops.Rows(_, type_, codec):
            how = "" if codec is None else f"compress by {format_value(codec)}"
            yield _format_operation(depth, "rows", name, _count_words(type_), how)
        case write_ops.Absent():
            yield _format_operation(depth, "absent", name)


def _column_words(leaf: Leaf | None, missing: str) -> str:
    """Return the column that is written, as ``name`` or ``outer.name``, with `` or null`` if it is nullable; ``missing``
    without one.
    """
    if leaf is None:
        return missing
    name = (
        leaf.column.name if leaf.inside is None else f"{leaf.inside.column.name}.{leaf.column.name}"
    )
    return f"{name} or null" if leaf.column.nullable else name


def _limits_words(limits: Limits) -> str:
    """Return the checks on a number in words, ``[one of 1, 2]``, ``[from 0 to 5]``, ``[from 0]`` or
    ``[to 5]``, ends included, or ``""`` if there are none.
    """
    if limits.allowed is not None:
        return f"[one of {', '.join(map(str, limits.allowed))}]"
    if limits.low is None:
        return "" if limits.high is None else f"[to {limits.high}]"
    return f"[from {limits.low}" + ("]" if limits.high is None else f" to {limits.high}]")


_COLUMN_WIDTH = 24


def explain_payloads(plan: Plan, view: View) -> Iterator[str]:
    """Yield the lines of a payload view: the part that decides and its values without rows, then
    for each combination of parts its rows with the value of each column. Combinations with equal
    rows are listed together; one without rows says ``no row``.
    """
    made = plan_payloads(plan, view)
    yield f"{view.name}, read ({view.span})"
    decider = made.decider
    if decider is not None and decider.choice is not None:
        numbers = {c.number for c in made.combinations}
        passed = [str(n) for n in decider.cases if n not in numbers]
        yield f"  decided by {decider.name}.{decider.choice.by}"
        if passed:
            yield _wrap_line(f"  no rows for {', '.join(passed)}", 6)
    for combinations in _group_equal(made.combinations):
        yield ""
        for combination in combinations:
            yield _combination_title(combination)
        for case in combinations[0].cases:
            yield from _payload_case(case)
        if not combinations[0].cases:
            yield "  no row"


def _group_equal(combinations: tuple[Combination, ...]) -> list[list[Combination]]:
    """Return the combinations in groups whose rows print the same, in order of first occurrence."""
    out: list[tuple[list[str], list[Combination]]] = []
    for combination in combinations:
        text = [line for case in combination.cases for line in _payload_case(case)]
        known = next((found for lines, found in out if lines == text), None)
        if known is None:
            out.append((text, [combination]))
        else:
            known.append(combination)
    return [found for _, found in out]


def _combination_title(combination: Combination) -> str:
    """Return the discriminator and the parts of a combination on one line, or on one line per part
    (with line feeds inside) if that is longer than ``WIDTH``.
    """
    parts = [f"{name} {_part_title(plan)}" for name, plan in combination.layouts.items()]
    number = "" if combination.number is None else f"{combination.number}: "
    line = number + ", ".join(parts)
    return line if len(line) <= WIDTH else number + f",\n{' ' * len(number)}".join(parts)


def _part_title(plan: LayoutPlan | None) -> str:
    """Return the layout of a part with its version, or ``null``."""
    if plan is None:
        return "null"
    return plan.name if plan.version is None else f"{plan.name}@{plan.version}"


def _payload_case(case: PayloadCase) -> Iterator[str]:
    """Yield the lines of one case: what makes a row and under which condition (``no row`` if it
    never has any), then the value of each column.
    """
    if case.empty:
        rows = "no row"
    else:
        rows = "a row" if case.array is None else f"each of {case.of}.{case.array.name} a row"
    yield _wrap_line(
        f"  {rows}" + ("" if case.when is None else f", if {format_value(case.when)}"), 6
    )
    for name, value in case.values.items():
        yield _wrap_line(
            f"    {name:<{_COLUMN_WIDTH - 1}} {format_value(value)}", _COLUMN_WIDTH + 4
        )


def _wrap_line(line: str, indent: int) -> str:
    """Return a line wrapped to the width of the terminal, with later lines indented by ``indent``
    blanks.
    """
    return textwrap.fill(line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


_BINDS = {"or": 1, "and": 2}
_ALONE = 6


def format_value(value: Value) -> str:
    """Return a value as text with as few parentheses as possible."""
    return _format_value(value)[0]


def format_range(low: int, high: int) -> str:
    """Return a range as text: ``4``, or ``1..5``."""
    return str(low) if low == high else f"{low}..{high}"


def _format_value(value: Value) -> tuple[str, int]:
    """Return a value as source text, and its precedence (higher binds tighter). Known versions are
    numbers; a derived value is its expression in its size, such as ``i32(first + count)``. All
    kinds of Value are covered: it does not fail.
    """
    match value:
        case nodes.Literal(number, type_):
            return (str(number) if type_.kind != "bool" else str(bool(number)).lower()), _ALONE
        case nodes.Data(data):
            return data_text(data), _ALONE
        case nodes.Word(name=name):
            return name, _ALONE
        case nodes.NullValue():
            return "null", _ALONE
        case nodes.FieldValue() | nodes.BitValue():
            word = value.word if isinstance(value, nodes.BitValue) else value
            owner = {"item": ("item",), "entry": ("entry",)}.get(word.owner, ())
            owner = (part,) if (part := part_of(word.owner)) is not None else owner
            return ".".join((*owner, *value.names)), _ALONE
        case nodes.ElementValue():
            return "item", _ALONE
        case nodes.EndValue(end, array, inner):
            of = "" if isinstance(inner, nodes.ElementValue) else f".{'.'.join(inner.names)}"
            return f"{end}({'.'.join(array.names)}){of}", _ALONE
        case nodes.LookUpValue(array, index, inner):
            of = "" if isinstance(inner, nodes.ElementValue) else f".{'.'.join(inner.names)}"
            return f"{format_value(array)}[{format_value(index)}]{of}", _ALONE
        case nodes.VersionValue(version):
            return ("version" if version is None else str(version)), _ALONE
        case nodes.PlaceValue(name):
            return name, _ALONE
        case nodes.ColumnValue(column, which):
            return column.name if which == "row" else f"{which}({column.name})", _ALONE
        case nodes.DerivedValue(_, inner, bits):
            return f"i{bits}({format_value(inner)})", _ALONE
        case nodes.Sum(operator, left, right):
            return f"{_format_side(left, 5)} {operator} {_format_side(right, 6)}", 5
        case nodes.Comparison(operator, left, right):
            return f"{_format_side(left, 5)} {operator} {_format_side(right, 5)}", 4
        case nodes.Membership(of, allowed):
            whole = len(allowed) == allowed[-1] - allowed[0] + 1
            numbers = (
                format_range(allowed[0], allowed[-1]) if whole else ", ".join(map(str, allowed))
            )
            return f"{_format_side(of, 5)} in {numbers}", 4
        case nodes.Logical(operator, left, right):
            own = _BINDS[operator]
            return f"{_format_side(left, own)} {operator} {_format_side(right, own + 1)}", own
        case nodes.Negation(operand):
            return f"not {_format_side(operand, 3)}", 3
        case nodes.Conditional(condition, then, otherwise):
            parts = format_value(condition), format_value(then), format_value(otherwise)
            return f"if {parts[0]} then {parts[1]} else {parts[2]}", 0


def _format_side(value: Value, min_precedence: int) -> str:
    """Return an operand as text, in parentheses if its precedence is below ``min_precedence``."""
    text, binds = _format_value(value)
    return text if binds >= min_precedence else f"({text})"
