"""Compare the names of the generated package, and the documentation, of two states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.diagnostics import Span
from codecgen.evolution.changes import Change
from codecgen.schema.model import Column, Field, Layout, Model, Rows, View
from codecgen.schema.types import BitMember, BitsType


def compare_names(old: Model, new: Model) -> Iterator[Change]:
    """Yield the changes of the generated package's API: its name, added and removed declarations,
    renamed enum values, and changes of derived values and views. Renamed fields are not among them.
    """
    if old.manifest.package != new.manifest.package:
        message = f"the package {old.manifest.package} becomes {new.manifest.package}"
        yield Change("names", "codecgen.yaml", message, span=new.manifest.span)
    for kind, before, after in (
        ("layout", old.layouts, new.layouts),
        ("choice", old.choices, new.choices),
        ("enum", old.enums, new.enums),
        ("text", old.texts, new.texts),
        ("view", old.views, new.views),
    ):
        yield from _compare_declared(kind, before, after)
    for name, enum in old.enums.items():
        if name in new.enums:
            numbers = {value.value: value for value in new.enums[name].values}
            for value in enum.values:
                other = numbers.get(value.value)
                if other is not None and other.name != value.name:
                    message = f"the value {value.value} is renamed to {other.name}"
                    yield Change("names", f"{name}.{value.name}", message, span=other.span)
    for name, layout in old.layouts.items():
        if name in new.layouts:
            yield from _compare_derived(layout, new.layouts[name])
    for name, view in old.views.items():
        if name in new.views:
            yield from _compare_views(view, new.views[name])


def _compare_declared(
    kind: str, old: Mapping[str, object], new: Mapping[str, object]
) -> Iterator[Change]:
    """Yield a change for each declaration of one kind that only one side has: removed ones first,
    then added ones. Inline layouts are skipped.
    """
    for names, others, what, side in (
        (old, new, "removed", "old"),
        (new, old, "added", "new"),
    ):
        for name, thing in names.items():
            if name not in others and not getattr(thing, "is_local", False):
                span: Span = getattr(thing, "span")  # noqa: B009
                message = f"the {kind} is {what}"
                yield Change(
                    "names", name, message, span=span, side="old" if side == "old" else "new"
                )


def _compare_derived(old: Layout, new: Layout) -> Iterator[Change]:
    """Yield a change for each derived value that is removed, has another type, has another
    expression, or is added.
    """
    there = {(d.array, d.name): d for d in new.derived}
    before = {(d.array, d.name): d for d in old.derived}
    for key, derived in before.items():
        path = ".".join(filter(None, (old.name, *key)))
        other = there.get(key)
        if other is None:
            message = "the derived value is removed"
            yield Change("names", path, message, span=derived.span, side="old")
            continue
        if derived.type != other.type:
            message = f"the type {derived.type} becomes {other.type}"
            yield Change("names", path, message, span=other.span)
        if str(derived.value) != str(other.value):
            message = f"{derived.value} becomes {other.value}"
            yield Change("names", path, message, span=other.span)
    for key, derived in there.items():
        if key not in before:
            path = ".".join(filter(None, (old.name, *key)))
            yield Change("names", path, "the derived value is added", span=derived.span)


def _compare_views(old: View, new: View) -> Iterator[Change]:
    """Yield a change for each column that is removed, has another type, or is added, and for each
    layout whose rows are missing or made in another way. Rows of new layouts, and another order of
    columns, yield nothing.
    """
    there = {column.name: column for column in new.columns}
    for column in old.columns:
        path = f"{old.name}.{column.name}"
        other = there.get(column.name)
        if other is None:
            yield Change("names", path, "the column is removed", span=column.span, side="old")
        elif _column_words(column) != _column_words(other):
            message = f"{_column_words(column)} becomes {_column_words(other)}"
            yield Change("names", path, message, span=other.span)
    names = {column.name for column in old.columns}
    for column in new.columns:
        if column.name not in names:
            path = f"{old.name}.{column.name}"
            yield Change("names", path, "the column is added", span=column.span)
    rows = [{(r.layout, r.each, *r.other_arrays): r for r in view.rows} for view in (old, new)]
    for key in rows[0]:
        if key not in rows[1]:
            message = f"layout {key[0]} no longer has rows"
            yield Change("names", old.name, message, span=new.span)
        elif _rows_form(rows[0][key]) != _rows_form(rows[1][key]):
            message = f"rows of {key[0]} are made in another way"
            yield Change("names", old.name, message, span=rows[1][key].span)


def _rows_form(rows: Rows) -> object:
    """Return a comparable form of how rows are made: expressions as text, conditions,
    ``header_only`` and parts, without places in the YAML.
    """
    write = rows.write
    expressions = [rows.values] if write is None else [rows.values, write.entry, write.item]
    return (
        [{name: str(value) for name, value in part.items()} for part in expressions],
        str(rows.when),
        str(rows.full_check),
        rows.header_only,
        dict(rows.parts),
    )


def _column_words(column: Column) -> str:
    """Return the type of a column in words, with its members in parentheses: ``nullable struct (a:
    int32, b: string), on request``.
    """
    null = "nullable " if column.nullable else ""
    request = ", on request" if column.on_request else ""
    inner = ", ".join(f"{part.name}: {_column_words(part)}" for part in column.parts)
    return f"{null}{column.type}" + (f" ({inner})" if inner else "") + request


_FIELD_KEYS = ("doc", "unit", "since", "spelled", "formerly", "misprint", "hidden", "sensitive")
_MEMBER_KEYS = ("doc", "since", "spelled", "misprint")


def compare_documentation(old: Model, new: Model) -> Iterator[Change]:
    """Yield a change for each title, ``doc``, release, link, example or other key of documentation
    that differs in the manifest or in declarations that both models have. Of choices, texts and
    views only ``doc`` is compared. Added and removed declarations, fields and values yield nothing.
    """
    for key in ("title", "doc", "spelling", "releases", "links"):
        if getattr(old.manifest, key) != getattr(new.manifest, key):
            message = f"`{key}` differs"
            yield Change("documentation", "codecgen.yaml", message, span=new.manifest.span)
    for name, layout in old.layouts.items():
        if name in new.layouts:
            yield from _compare_layout_texts(layout, new.layouts[name])
    for before, after in (
        (old.choices, new.choices),
        (old.enums, new.enums),
        (old.texts, new.texts),
        (old.views, new.views),
    ):
        for name, thing in before.items():
            if name in after and getattr(thing, "doc", "") != getattr(after[name], "doc", ""):
                span: Span = getattr(after[name], "span")  # noqa: B009
                yield Change("documentation", name, "`doc` differs", span=span)
    for name, enum in old.enums.items():
        there = {value.name: value for value in new.enums[name].values} if name in new.enums else {}
        for value in enum.values:
            if value.name in there:
                keys = ("doc", "since", "spelled")
                other = there[value.name]
                yield from _compare_keys(f"{name}.{value.name}", value, other, keys, other.span)


def _compare_layout_texts(old: Layout, new: Layout) -> Iterator[Change]:
    """Yield a change for each documentation key (``doc``, releases, examples and others) that
    differs for a layout, or for fields and bit members that have the same name in both.
    """
    keys = ("doc", "since", "draft", "version_notes", "examples")
    yield from _compare_keys(old.name, old, new, keys, new.span)
    there: dict[str, Field] = {f.name: f for f in new.fields}
    for f in old.fields:
        other = there.get(f.name)
        if other is None:
            continue
        path = f"{old.name}.{f.name}"
        yield from _compare_keys(path, f, other, _FIELD_KEYS, other.span)
        if isinstance(f.type, BitsType) and isinstance(other.type, BitsType):
            members: dict[str, BitMember] = {m.name: m for m in other.type.members}
            for m in f.type.members:
                if m.name in members:
                    found = members[m.name]
                    yield from _compare_keys(f"{path}.{m.name}", m, found, _MEMBER_KEYS, found.span)


def _compare_keys(
    path: str, old: object, new: object, keys: tuple[str, ...], span: Span
) -> Iterator[Change]:
    """Yield a documentation change for each attribute in ``keys`` whose value differs between
    ``old`` and ``new``, apart from places in the YAML.
    """
    for key in keys:
        if _without_places(getattr(old, key)) != _without_places(getattr(new, key)):
            yield Change("documentation", path, f"`{key}` differs", span=span)


def _without_places(value: object) -> object:
    """Return a form of a value to compare without places in the YAML: examples (a tuple) by what
    readers see of them, other values by their ``repr``.
    """
    return repr(value) if not isinstance(value, tuple) else [_example_form(one) for one in value]


def _example_form(value: object) -> object:
    """Return the parts of an example that are compared: name, doc, bytes, values and version; None
    for one that it lacks.
    """
    return [getattr(value, key, None) for key in ("name", "doc", "data", "value", "version")]
