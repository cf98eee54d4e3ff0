"""Compare text files of two states."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.evolution.changes import Change
from codecgen.plan import Plan
from codecgen.runtime.nouns import count_noun
from codecgen.schema.texts import EachLine, Text, TextValue


def compare_texts(plans: tuple[Plan, Plan]) -> Iterator[Change]:
    """Yield the changes of the texts (files of lines or properties) that the first plan declares:
    removed ones, and differences from the second plan. Added texts yield nothing.
    """
    old, new = (plan.model.texts for plan in plans)
    for name, text in old.items():
        if name in new:
            yield from _compare_text(text, new[name])
        else:
            yield Change("bytes", name, "is removed", "B025", span=text.span, side="old")


def _compare_text(old: Text, new: Text) -> Iterator[Change]:
    """Yield the changes of a text: lines instead of properties (nothing more then), rejected empty
    texts or unknown keys, final newline, removed tolerances (all breaking), and the changes of its
    lines or properties.
    """
    kinds = ["properties" if text.properties else "lines" for text in (old, new)]
    if kinds[0] != kinds[1]:
        message = f"{kinds[0]} become {kinds[1]}"
        yield Change("bytes", old.name, message, "B025", span=new.span)
        return
    if old.may_be_empty and not new.may_be_empty:
        yield Change("bytes", old.name, "an empty text is rejected", "B025", span=new.span)
    if old.final_newline != new.final_newline:
        yield Change("bytes", old.name, "the final newline differs", "B025", span=new.span)
    if old.keep_unknown and not new.keep_unknown:
        yield Change("bytes", old.name, "unknown keys are rejected", "B018", span=new.span)
    removed = sorted(old.accepts - new.accepts)
    if removed:
        message = f"the tolerance {', '.join(removed)} is removed"
        yield Change("bytes", old.name, message, "B023", span=new.span)
    if old.properties:
        yield from _compare_properties(old, new)
    else:
        yield from _compare_lines(old, new)


def _compare_properties(old: Text, new: Text) -> Iterator[Change]:
    """Yield a change for each property key that is removed (breaking) or added (breaking without a
    default), and the changes of those that both texts have. Their order does not matter.
    """
    there = {value.key: value for value in new.properties}
    for value in old.properties:
        path = f"{old.name}.{value.name}"
        other = there.get(value.key)
        if other is None:
            message = f"the property {value.key} is removed"
            yield Change("bytes", path, message, "B025", span=value.span, side="old")
        else:
            yield from _compare_values(path, value, other)
    keys = {value.key for value in old.properties}
    for value in new.properties:
        if value.key not in keys:
            rule = "B025" if value.default is None else ""
            message = f"the property {value.key} is added" + (" without a default" if rule else "")
            yield Change("bytes", f"{old.name}.{value.name}", message, rule, span=value.span)


def _compare_lines(old: Text, new: Text) -> Iterator[Change]:
    """Yield one breaking change if the number of lines differs; otherwise compare lines by
    position: single or repeated, separator, count, and their values.
    """
    if len(old.lines) != len(new.lines):
        message = f"{len(old.lines)} kinds of lines become {len(new.lines)}"
        yield Change("bytes", old.name, message, "B025", span=new.span)
        return
    names = {line.name: other.name for line, other in zip(old.lines, new.lines, strict=True)}
    for line, other in zip(old.lines, new.lines, strict=True):
        path = f"{old.name}.{line.name}"
        match line, other:
            case TextValue(), TextValue():
                yield from _compare_values(path, line, other, names)
            case EachLine(), EachLine():
                counted = None if line.counted_by is None else names.get(line.counted_by)
                if (line.separator, counted) != (other.separator, other.counted_by):
                    message = "the separator or the count of repeated lines differs"
                    yield Change("bytes", path, message, "B025", span=other.span)
                if len(line.values) != len(other.values):
                    message = f"{count_noun(len(line.values), 'value in a line becomes', 'values in a line become')} {len(other.values)}"
                    yield Change("bytes", path, message, "B025", span=other.span)
                    continue
                for one, two in zip(line.values, other.values, strict=True):
                    yield from _compare_values(f"{path}.{one.name}", one, two)
            case _:
                message = "a single line becomes repeated lines, or the reverse"
                yield Change("bytes", path, message, "B025", span=other.span)


def _compare_values(
    path: str, old: TextValue, new: TextValue, names: dict[str, str] | None = None
) -> Iterator[Change]:
    """Yield a change for each difference of a value: name (a change of names only), and, as changes
    of the bytes, kind, label, separator, count, constant, default, ``valid``, ``refuse`` and
    removed tolerances. A condition that is dropped is compatible. An added default, and a condition
    in place of another, only perhaps break. ``names`` maps old line names to new ones.
    """
    if old.name != new.name:
        yield Change("names", path, f"is renamed to {new.name}", span=new.span)
    counts = old.counts if names is None or old.counts is None else names.get(old.counts)
    for what, before, after, rule in (
        ("kind", f"{old.kind} {old.of}", f"{new.kind} {new.of}", "B025"),
        ("label", old.label, new.label, "B025"),
        ("separator", old.separator, new.separator, "B025"),
        ("count", counts, new.counts, "B025"),
        ("const", old.const, new.const, "B010"),
    ):
        if before != after:
            message = f"the {what} {before!r} becomes {after!r}"
            yield Change("bytes", path, message, rule, span=new.span)
    if str(old.default) != str(new.default):
        message = f"the default {old.default} becomes {new.default}"
        yield Change("bytes", path, message, "B025", old.default is not None, span=new.span)
    for key, one, other in (("valid", old.valid, new.valid), ("refuse", old.refuse, new.refuse)):
        if str(one) != str(other):
            rule = "" if other is None else "B012"
            message = f"{key} {one or 'nothing'} becomes {other or 'nothing'}"
            yield Change("bytes", path, message, rule, one is None, span=new.span)
    removed = sorted(old.accepts - new.accepts)
    if removed:
        message = f"the tolerance {', '.join(removed)} is removed"
        yield Change("bytes", path, message, "B023", span=new.span)
