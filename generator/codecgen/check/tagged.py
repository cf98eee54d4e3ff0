"""Check flexible layouts and tagged fields: their versions, their tags, and their defaults."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.runtime.nouns import count_noun
from codecgen.schema.expression import Data, Null, Number, Path, Truth
from codecgen.schema.flexible import UNKNOWN_TAGS
from codecgen.schema.lookup import (
    covered_parts,
    enum_values,
    field_of,
    members,
    reference_of,
    versions_of,
)
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import (
    FROM_OUTSIDE,
    ZERO_TERMINATED,
    ArrayType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
    TagsType,
    Versions,
)
from codecgen.spans import place

HIGHEST = (1 << 31) - 1
_NOT_TAGGED = (
    *("when", "const", "is", "measures", "counts", "checksum", "covers"),
    *("valid", "refuse", "compressed", "until", "length", "nesting", "at_least"),
    *("padding", "padded", "mask"),
)
"""Keys of a field that lies in the order of the bytes."""


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield diagnostics about flexible layouts (compact lengths and tagged fields): bad
    ``flexible`` ranges, fields of the same name, tags out of range or used twice, ranges that end
    in a tagged field, held layouts that are not equally flexible, and tagged fields without a
    usable default.
    """
    for layout in model.layouts.values():
        if not layout.is_local:
            yield from _check_flexible(layout)
        yield from _check_names(layout)
        yield from unique(_check_tags(layout))
        yield from unique(_check_ranges(layout))
        for f in layout.fields:
            yield from unique(_check_held(f, layout, model))
            if f.tag is not None:
                yield from _check_tagged_field(f, layout, model)


def _check_flexible(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the range ``flexible`` has an upper end, begins above 0 for a layout
    without versions, or begins after all versions of the layout. Yield nothing if it is ``never``
    or not given.
    """
    declared, versions = layout.flexible, layout.versions
    if not isinstance(declared, Versions):
        return
    where = place(layout, "flexible")
    if declared.high is not None:
        message = f'"flexible" is {declared}: versions that follow a flexible one are flexible too'
        yield Diagnostic("C051", message, where, help=f"write {declared.low}+")
    elif versions is None and declared.low:
        message = f'"{layout.name}" has no versions'
        yield Diagnostic("C020", message, where, help="write `flexible: 0+`, or `flexible: never`")
    elif versions is not None and versions.high is not None and declared.low > versions.high:
        message = f'"{layout.name}" has versions {versions}, and none of them is flexible'
        help = "write `flexible: never`, or correct the versions"
        yield Diagnostic("C051", message, where, help=help)


def _check_names(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field that has the name of an earlier field of the layout, also
    if that is the generated list of unknown tagged fields.
    """
    seen: dict[str, Field] = {}
    for f in layout.fields:
        other = seen.setdefault(f.name, f)
        if other is f:
            continue
        if isinstance(f.type, TagsType):
            message = (
                f'"{UNKNOWN_TAGS}" is the list of tagged fields that "{layout.name}" does not name'
            )
            yield Diagnostic("C008", message, other.span, help="take another name")
        else:
            message = f'"{f.name}" is a field already'
            yield Diagnostic("C008", message, f.span, help=f"it is declared at {other.span}")


def _check_tags(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each tag that is not 0 to ``HIGHEST``, or that an earlier field of the
    layout has, in any version.
    """
    seen: dict[int, Field] = {}
    for f in layout.fields:
        if f.tag is None:
            continue
        where = place(f, "tag")
        if not 0 <= f.tag <= HIGHEST:
            yield Diagnostic("C052", f"a tag is a number from 0 to {HIGHEST}", where)
        if f.tag in seen:
            other = seen[f.tag]
            message = f'tag {f.tag} is already that of "{other.name}"; a tag has one field in all versions'
            yield Diagnostic("C052", message, where, help=f"it is declared at {other.span}")
        seen.setdefault(f.tag, f)


def _check_ranges(layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each tagged field with which a range of a length or checksum begins or
    ends.
    """
    for f in layout.fields:
        measured = [] if f.measures is None else [("measures", f.measures)]
        for key, found in (*measured, *covered_parts(f)):
            for name in (found.first, found.last):
                end = None if name is None else field_of(layout, name)
                if end is not None and end.tag is not None:
                    message = f'"{name}" is tagged, so no range can begin or end with it'
                    help = "remove `to`: the range then ends with the layout"
                    if name == found.first:
                        help = "begin the range with a field that is not tagged"
                    yield Diagnostic("C052", message, place(f, key), help=help)


def _check_held(f: Field, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a flexible layout holds a layout that does not say whether it is
    flexible, and for the first version in which only one of the two is flexible. The second is not
    checked for layouts that are ``never`` flexible, or have a fixed version, a version field or no
    versions. Cases of choices and inline layouts are not checked.
    """
    ref = reference_of(f)
    held = None if ref is None else model.layouts.get(ref.layout)
    if held is None or ref is None or held.is_local or layout.flexible in (None, "never"):
        return
    if held.flexible is None:
        message = f'"{layout.name}" is flexible, but "{held.name}", which it holds, does not say whether it is'
        wanted = "0+" if held.versions is None else layout.flexible
        help = f'"{held.name}" is declared at {held.span}: write `flexible: {wanted}` there, or `flexible: never` if it is not flexible'
        yield Diagnostic("C051", message, ref.span, help=help)
    if not isinstance(held.flexible, Versions) or held.versions is None or ref.version is not None:
        return
    assert isinstance(layout.flexible, Versions)
    for version in versions_of(layout, f.versions) if held.version_is is None else ():
        if version is None or version not in held.versions:
            continue
        if (version in layout.flexible) is not (version in held.flexible):
            which = layout.name if version in layout.flexible else held.name
            other = held.name if which == layout.name else layout.name
            message = f'in version {version} "{which}" is flexible, but "{other}" is not'
            help = f'"{layout.name}" says `flexible: {layout.flexible}` ({place(layout, "flexible")}), "{held.name}" says `flexible: {held.flexible}` ({place(held, "flexible")}): correct the wrong one, so that both begin with the same version'
            yield Diagnostic("C051", message, ref.span, help=help)
            return


def _check_tagged_field(f: Field, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a tagged field has a key that it cannot have (and no other diagnostic
    then), exists in a version that is not flexible, has no default that is known when it is omitted
    (0 for an enum without 0 is none), or is a choice, an array of fixed size, or bytes without a
    length.
    """
    for key in _NOT_TAGGED:
        if key in f.places:
            message, help = f'"{key}" is not for tagged fields', f'take out "{key}"'
            if key == "padding":  # it says what the field is
                message = "a tagged field cannot be padding"
                help = f'remove "{f.name}", or give it a `type` instead of `padding`'
            yield Diagnostic("C052", message, place(f, key), help=help)
            return
    yield from _check_versions(f, layout)
    nullable = getattr(f.type, "null", None) is not None
    if f.filled:
        yield from unique(_check_filled(f, model))
    elif isinstance(f.type, StructType) and not nullable:
        message = f'"{f.name}" has no default for messages without it'
        help = "add `none: true`: it is null then; or `default: {}`"
        yield Diagnostic("C052", message, f.span, help=help)
    if isinstance(f.type, ChoiceType):
        message = f'"{f.name}", one of several layouts, has no default for messages without it'
        help = "put it into a layout that can be null, or into an array"
        yield Diagnostic("C052", message, place(f, "choice"), help=help)
    if isinstance(f.type, ArrayType) and f.type.fixed is not None:
        elements = count_noun(f.type.fixed, "element")
        message = f'"{f.name}" always has {elements}, but a tagged field that is left out has none'
        yield Diagnostic(
            "C052",
            message,
            place(f, "count"),
            help="remove `count`: the layout then writes the number",
        )
    if isinstance(f.type, BytesType) and (f.type.length in ("rest", ZERO_TERMINATED, FROM_OUTSIDE)):
        message = "the size of a tagged field is in front of it already"
        yield Diagnostic("C052", message, f.span, help="write `type: bytes`, or `type: string`")
    for m in members(f):
        node = None if m.default is None else m.default.node
        word = isinstance(node, Path) and len(node.names) == 1 and m.enum is not None
        if m.default is not None and not (isinstance(node, Number | Truth) or word):
            yield _dependent_diagnostic(place(m, "default"))
    if f.default is not None:
        yield from _check_default(f)
    elif isinstance(f.type, ScalarType) and f.type.enum in model.enums:
        enum = model.enums[f.type.enum or ""]
        if 0 not in {number for _, number in enum_values(enum, f.type.only)}:
            message = f'"{f.name}" defaults to 0, which is not a value of "{enum.name}"'
            yield Diagnostic("C052", message, f.span, help="give it a `default`")


def _check_filled(f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field of a layout held with the default ``{}`` that has no
    default, constant or ``absent`` of its own. Exempt are arrays without a fixed number of
    elements, tagged fields, nullable structs and version fields.
    """
    ref = reference_of(f)
    held = None if ref is None else model.layouts.get(ref.layout)
    for inner in () if held is None else held.fields:
        known = inner.default is not None or inner.absent is not None or inner.const is not None
        counted = isinstance(inner.type, ArrayType) and inner.type.fixed is None
        has_value = known or counted or inner.tag is not None or isinstance(inner.type, TagsType)
        nullable = isinstance(inner.type, StructType) and inner.type.present is not None
        if not has_value and not nullable and not inner.is_version:
            message = f'"{inner.name}" has no default for messages without "{f.name}"'
            help = f'give it a default ({inner.span}), or take "default: {{}}" out'
            yield Diagnostic("C052", message, place(f, "default"), help=help)


def _check_versions(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the layout has no flexible versions, or if a tagged field exists in a
    version before the first flexible one.
    """
    if not isinstance(layout.flexible, Versions):
        message = f'"{layout.name}" has no flexible versions, and "{f.name}" is tagged'
        yield Diagnostic("C052", message, place(f, "tag"), help="add `flexible: 0+`")
        return
    early = [v for v in versions_of(layout, f.versions) if v is not None]
    if early and min(early) not in layout.flexible:
        message = f'"{f.name}" is tagged, but version {min(early)} is not flexible'
        where = place(f, "versions") if "versions" in f.places else f.span
        yield Diagnostic("C052", message, where, help=f"write `versions: {layout.flexible}`")


def _check_default(f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless the default of a tagged field, which must have one, is a literal
    (number, truth, bytes, text or null) or the name of an enum value.
    """
    assert f.default is not None
    node = f.default.node
    word = isinstance(node, Path) and len(node.names) == 1 and getattr(f.type, "enum", None)
    if not (isinstance(node, Number | Truth | Data | Null) or word):
        yield _dependent_diagnostic(place(f, "default"))


def _dependent_diagnostic(where: Span) -> Diagnostic:
    """Return the diagnostic about a default that depends on something."""
    message = "the default of a tagged field depends on nothing"
    help = "write a number, true or false, text, {hex: ..}, null or a value of the enum"
    return Diagnostic("C052", message, where, help=help)


__all__ = ["check"]
