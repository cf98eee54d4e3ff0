"""Words and rows that the explanations share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from codecgen.diagnostics import Span
from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.type_text import checksum_words
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import choice_of
from codecgen.schema.model import Choice, Field
from codecgen.schema.types import ArrayType, FieldRange, Misprint

WIDTH = 100
_KEY = 12


def given_words(choice: Choice) -> str:
    """Return the discriminator of a choice that is decided from outside, in words."""
    return f"a value of {choice.given}" if choice.given else f"a number ({choice.given_type})"


def inside_words(f: Field) -> str:
    """Return in words why a field has nothing inside: ``has nothing inside``, or for a choice with
    cases that it is one of several, with their names.
    """
    choice = choice_of(f)
    if choice is None or not choice.layouts:
        return "has nothing inside"
    return f"is one of several: ask for {', '.join(map(str, choice.layouts))}"


def relations(fp: FieldPlan, plan: LayoutPlan) -> Iterator[tuple[str, str]]:
    """Yield (relation, words) for each relation of a field to others: the range that it measures,
    the array that it counts, the fields that its checksum covers, and the lengths and checksums
    that measure or cover it. Raise ValueError if the version lacks an end of one of these ranges,
    which the checks exclude.
    """
    f = fp.field
    if fp.measures is not None:
        yield "measures", f"{range_words(fp.measures, plan)}, in bytes"
    if f.counts:
        yield "counts", " and ".join(f.counts)
    if f.checksum is not None:
        yield "checksum", f"{checksum_words(f)} over {covered_words(fp, plan)}"
    for other in plan.fields:
        if other.measures is not None and fp in plan.field_range(other.measures):
            yield "measured by", other.name
        if fp in plan.covered(other):
            zero = ", as zero bytes" if fp.name in other.field.zero else ""
            yield "covered by", f"{other.name} ({other.field.checksum}{zero})"


def covered_words(checksum: FieldPlan, plan: LayoutPlan) -> str:
    """Return the field ranges that a checksum covers in words, joined by ``, then``, and the fields
    that count as zeros, if there are any. ``plan`` is the layout version. Raise ValueError if the
    version lacks an end of a range.
    """
    words = ", then ".join(range_words(part, plan) for part in checksum.covers)
    zero = ", ".join(checksum.field.zero)
    return f"{words}, with zeros for {zero}" if zero else words


def tag_words(fp: FieldPlan) -> str:
    """Return the tag of a field: ``tag 3``, or ``""`` for other fields."""
    return "" if fp.field.tag is None else f"tag {fp.field.tag}"


def range_words(field_range: FieldRange, plan: LayoutPlan) -> str:
    """Return a field range in words: ``a`` for one field, ``a to the end`` if it ends with the
    version's last field, else ``a to b``. Raise ValueError if the version lacks an end.
    """
    fields = plan.field_range(field_range)
    first, last = fields[0].name, fields[-1].name
    if first == last:
        return first
    return f"{first} to the end" if last == plan.fields[-1].name else f"{first} to {last}"


def misprint_row(misprint: Misprint | None) -> Iterator[str]:
    """Yield the row about a misprint, if there is one."""
    if misprint is not None:
        until = f" until {misprint.until}" if misprint.until else ""
        yield from row(
            "misprint", f"documents{until} say {misprint.shown!r}. {misprint.doc}".strip()
        )


def title(name: str, kind: str, span: Span) -> Iterator[str]:
    """Yield the first line of an explanation: ``name: kind (place)``."""
    yield f"{name}: {kind} ({span})"


def paragraph(text: str) -> Iterator[str]:
    """Yield a blank line, the lines of ``text`` wrapped to ``WIDTH``, and a blank line. If ``text``
    is empty, yield one blank line only.
    """
    if text:
        yield ""
        yield from textwrap.wrap(text, WIDTH)
    yield ""


def row(key: str, text: str) -> Iterator[str]:
    """Yield a row with a key, wrapped. Yield nothing for an empty text."""
    if text:
        yield from wrap_text(f"  {key:<{_KEY}} {text}", _KEY + 3)


def wrap_text(text: str, indent: int) -> list[str]:
    """Return the lines of a text wrapped to ``WIDTH``; all but the first begin with ``indent``
    blanks. Long words are not broken. Empty text gives ``[]``.
    """
    return textwrap.wrap(
        text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def types_in(f: Field, plans: list[LayoutPlan]) -> Iterator[tuple[Field, str]]:
    """Yield (field with one type, words for the versions that have this type, such as `` in version
    0, 1``), for each type among ``plans``. A field without types by version gives one pair with
    ``""``, whether or not the plans have the field.
    """
    if not f.types:
        yield f, ""
        return
    found: dict[str, tuple[Field, list[str]]] = {}
    for plan in plans:
        if plan.field(f.name) is not None:
            one = f.in_versions((plan.version,))
            found.setdefault(repr(one.type), (one, []))[1].append(str(plan.version))
    for one, versions in found.values():
        yield one, f" in version {', '.join(versions)}"


def array_rows(type_: ArrayType) -> Iterator[str]:
    """Yield rows about the nesting limit, minimum count, codec and codec variants of an array, as
    far as it has them.
    """
    if type_.nesting is not None:
        yield from row("nesting", f"at most {type_.nesting} deep in itself")
    if type_.at_least:
        yield from row("at least", count_noun(type_.at_least, "element"))
    c = type_.compression
    if c is None:
        return
    yield from row(
        "compressed",
        f"by the codec that {c.by} names; at most {count_noun(c.limit, 'byte')} decompressed",
    )
    yield from row("except", ", ".join(c.excluded))
    for codec, versions, write, read in c.variants:
        when = f"version {versions}: " if versions is not None else ""
        yield from row("variant", f"{when}{codec} is written as {write}, read as {read}")
