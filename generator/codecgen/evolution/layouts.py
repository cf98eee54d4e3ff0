"""Compare the bytes of layouts of two states, version by version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace

from codecgen.diagnostics import Span
from codecgen.evolution.changes import Change
from codecgen.evolution.conditions import find_narrowing, named_shape, presence
from codecgen.evolution.fields import FieldComparison
from codecgen.evolution.messages import compare_messages
from codecgen.evolution.pairs import LayoutPair, select_version
from codecgen.plan import FieldPlan, LayoutPlan, Plan, RulePlan
from codecgen.plan.equality import conjuncts
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import Absent, Padding, ReadOp, Require, Tags, When
from codecgen.plan.read_program import read_program
from codecgen.plan.type_text import type_words
from codecgen.schema.lookup import has_byte_order
from codecgen.schema.types import PaddingType, TagsType, Versions


class LayoutComparer:
    """Compares layouts of two plans. Each pair of layout versions is compared once."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self.old = old
        self.new = new
        self._known: dict[tuple[tuple[str, int | None], tuple[str, int | None]], list[Change]] = {}

    def compare(self, name: str) -> Iterator[Change]:
        """Yield the changes of a layout that both states declare: old versions that are removed, or
        differ from the version that continues them; added versions; and its place in a protocol. No
        change of an unstable version is breaking. If only one state gives the layout versions,
        yield a change of names too. Raise KeyError if a side lacks the layout.
        """
        plans = self.new.versions[name]
        layout = self.new.model.layouts[name]
        unstable = _find_unstable(self.old, name)
        continued = set()
        for old in self.old.versions[name]:
            new = select_version(old, plans)
            continued.add(None if new is None else new.version)
            if new is None:
                span = layout.places.get("versions", layout.span)
                message = f"version {old.version} is removed"
                found = [Change("bytes", name, message, "B002", span=span)]
            else:
                found = self.compare_pair(old, new)
            is_unstable = unstable is not None and old.version in unstable
            yield from (replace(change, rule="") for change in found) if is_unstable else found
        before = {plan.version for plan in self.old.versions[name]}
        for new in plans:
            if new.version is not None and new.version not in continued:
                yield Change("bytes", name, f"version {new.version} is added", span=layout.span)
        if (None in before) != (layout.versions is None):
            message = "versions are added" if None in before else "versions are removed"
            message += ", so that its codecs have other names"
            yield Change("names", name, message, span=layout.span)
        kept = sorted(v for v in before & {plan.version for plan in plans} if v is not None)
        yield from compare_messages(self.old.model.layouts[name], layout, kept)

    def compare_pair(self, old: LayoutPlan, new: LayoutPlan) -> list[Change]:
        """Return the changes from one layout version to another, from a cache if the pair was
        compared before. A pair that is still being compared, because layouts hold each other, has
        none.
        """
        key = ((old.name, old.version), (new.name, new.version))
        if key not in self._known:
            self._known[key] = []
            self._known[key] = list(_Comparison(self, old, new).compare())
        return self._known[key]

    def find_incompatibility(
        self, old: Sequence[LayoutPlan], new: Sequence[LayoutPlan]
    ) -> tuple[str, bool]:
        """Return (reason, whether it is certain) why bytes of one of the layouts ``old`` are not
        read as one of ``new``, or ``("", True)`` if all are, also if ``old`` is empty. The first
        reason counts. Layouts of the same name and version count as equal; they are compared on
        their own.
        """
        for one in old:
            other = select_version(one, new)
            if other is None:
                version = "" if one.version is None else f" in version {one.version}"
                return f"{one.name}{version} is no longer possible", True
            if (one.name, one.version) == (other.name, other.version):
                continue
            for change in self.compare_pair(one, other):
                if change.is_breaking:
                    reason = f"{change.path} of {other.name}: {change.message}"
                    return reason, change.is_certain
        return "", True


def _find_unstable(plan: Plan, name: str) -> Versions | None:
    """Return the versions of a layout that may still change: those of the message that it is or
    (if declared inside another layout) belongs to. Return None if there are none.
    """
    owner = plan.model.layouts.get(name.partition(".")[0])
    return None if owner is None or owner.message is None else owner.message.unstable


class _Comparison:
    """Compares one version of a layout with one version of another layout, which usually has the same name."""

    def __init__(self, comparer: LayoutComparer, old: LayoutPlan, new: LayoutPlan) -> None:
        self.comparer = comparer
        self.old = old
        self.new = new
        self.names = _match_fields(old, new)
        self.pair = LayoutPair(comparer.old, comparer.new, old, new, self.names, comparer)

    def compare(self) -> Iterator[Change]:
        """Yield all changes of the bytes of a layout version. If none of them is breaking but the
        read programs differ, also yield one change that is perhaps breaking.
        """
        found = list(self._explain())
        yield from found
        if any(change.is_breaking for change in found):
            return
        programs = (
            list(_canonical_program(self.comparer.old, self.old, self.names)),
            list(_canonical_program(self.comparer.new, self.new, {})),
        )
        if programs[0] != programs[1]:
            message = "the read program differs"
            yield self.pair.change(
                self.old.name, message, "B026", self.new.layout.span, certain=False
            )

    def _explain(self) -> Iterator[Change]:
        """Yield the changes of fields (removed, added, renamed, reordered, changed), rules and
        tolerances. Removed tolerances and another order are breaking.
        """
        yield from self._compare_presence()
        order = [self.names[fp.name] for fp in _in_order(self.old) if fp.name in self.names]
        kept = set(order)
        there = [fp.name for fp in _in_order(self.new) if fp.name in kept]
        if order != there and set(order) == set(there):
            first = next(name for name, other in zip(order, there, strict=True) if name != other)
            message = f"the order {', '.join(order)} becomes {', '.join(there)}"
            yield self.pair.change(f"{self.old.name}.{first}", message, "B005", self._span(first))
        for fp in (*_in_order(self.old), *self.old.tagged):
            if fp.name in self.names:
                new = self.new.field(self.names[fp.name])
                assert new is not None
                yield from FieldComparison(self.pair, fp, new).compare()
        yield from self._compare_rules()
        removed = sorted(self.old.layout.accepts - self.new.layout.accepts)
        if removed:
            message = f"the tolerance {', '.join(removed)} is removed"
            yield self.pair.change(self.old.name, message, "B023", self.new.layout.span)

    def _compare_presence(self) -> Iterator[Change]:
        """Yield a change for each field that is removed or added (breaking), or renamed. An added
        tagged field is breaking only if old readers reject its tag.
        """
        for fp in (*_in_order(self.old), *self.old.tagged):
            path = f"{self.old.name}.{fp.name}"
            if fp.name not in self.names:
                message = f"{_field_words(fp)} is removed"
                yield self.pair.change(path, message, "B003", fp.field.span, side="old")
            elif self.names[fp.name] != fp.name:
                message = f"is renamed to {self.names[fp.name]}"
                yield Change("names", path, message, span=self._span(self.names[fp.name]))
        matched = set(self.names.values())
        for fp in (*_in_order(self.new), *self.new.tagged):
            if fp.name in matched:
                continue
            path = f"{self.old.name}.{fp.name}"
            tag = fp.field.tag
            rule, message = "B004", f"{_field_words(fp)} is added"
            if tag is not None:
                rule = "B009" if tag in self.old.other_tags else ""
                message += ", whose old readers reject the tag" if rule else ""
            yield self.pair.change(path, message, rule, fp.field.span)

    def _compare_rules(self) -> Iterator[Change]:
        """Yield a change for each rule of the new layout that is new (breaking) or differs
        (breaking unless all old data surely meets it), and for each old name that is missing
        (compatible). New rules whose conditions the old rules have, under any name, yield nothing.
        """
        before = [_rule_conditions(rule) for rule in self.old.rules]
        known = {named_shape(one, self.names) for found in before for one in found}
        old_by_name = {rule.name: rule for rule in self.old.rules}
        for rule in self.new.rules:
            conditions = _rule_conditions(rule)
            if all(named_shape(one, {}) in known for one in conditions) and (
                rule.ascending is None
                or any(self._is_same_ascending(one, rule) for one in self.old.rules)
            ):
                continue
            path = f"{self.old.name}.{rule.name}"
            other = old_by_name.get(rule.name)
            if other is None:
                message = f"the rule {rule.rule.text} is added"
                yield self.pair.change(path, message, "B024", rule.rule.span)
                continue
            all_old = [one for found in before for one in found]
            narrowing = find_narrowing(all_old, conditions, self.names) if conditions else "yes"
            message = f"the rule {other.rule.text} becomes {rule.rule.text}"
            yield self.pair.change(
                path,
                message,
                "" if narrowing == "no" else "B024",
                rule.rule.span,
                certain=narrowing == "yes",
            )
        there = {rule.name for rule in self.new.rules}
        for rule in self.old.rules:
            if rule.name not in there:
                path = f"{self.old.name}.{rule.name}"
                message = f"the rule {rule.rule.text} is removed"
                yield self.pair.change(path, message, "", rule.rule.span, side="old")

    def _is_same_ascending(self, old: RulePlan, new: RulePlan) -> bool:
        """Return whether two rules require the same field of the same (perhaps renamed) array to
        ascend. False if one of them is a condition.
        """
        if old.array is None or new.array is None:
            return False
        arrays = self.names.get(old.array.name) == new.array.name
        return arrays and named_shape(old.ascending, {}) == named_shape(new.ascending, {})

    def _span(self, name: str) -> Span:
        """Return the place of the field ``name`` in the new schemas, or that of the layout if it
        has no such field.
        """
        found = self.new.field(name)
        return self.new.layout.span if found is None else found.field.span


def _rule_conditions(rule: RulePlan) -> list[Value]:
    """Return the conditions that must hold for a rule; ``[]`` for a rule about ascending elements."""
    return [] if rule.condition is None else conjuncts(rule.condition)


def _field_words(fp: FieldPlan) -> str:
    """Return a field in words: ``field (uint16)``, ``tagged field 3 (text ..)``, or ``the section
    of tagged fields``.
    """
    if isinstance(fp.field.type, TagsType):
        return "the section of tagged fields"
    tag = "field" if fp.field.tag is None else f"tagged field {fp.field.tag}"
    return f"{tag} ({type_words(fp.field.type)})"


def _in_order(plan: LayoutPlan) -> list[FieldPlan]:
    """Return the fields in the order of their bytes, without tagged fields, fields whose condition
    is always false, and padding that is always empty.
    """
    return [
        fp for fp in plan.in_order if presence(fp.when) != "never" and not _is_empty_padding(fp)
    ]


def _is_empty_padding(fp: FieldPlan) -> bool:
    """Return whether a field is padding that never has a byte, because its position is always a multiple."""
    return isinstance(fp.field.type, PaddingType) and fp.size == 0


def _match_fields(old: LayoutPlan, new: LayoutPlan) -> dict[str, str]:
    """Return the new name of each field that both layouts have. A missing field counts as renamed
    if a new field of the same kind of type and size has its tag or, if both layouts have equally
    many untagged fields, its position. Fields without counterpart are left out.
    """
    there = {fp.name: fp for fp in (*_in_order(new), *new.tagged)}
    before = {fp.name: fp for fp in (*_in_order(old), *old.tagged)}
    names = {name: name for name in before if name in there}
    sequences = (_in_order(old), _in_order(new))
    if len(sequences[0]) == len(sequences[1]):
        for one, other in zip(*sequences, strict=True):
            if one.name not in there and other.name not in before and _has_same_type(one, other):
                names[one.name] = other.name
    for one in old.tagged:
        for other in new.tagged:
            is_free = one.name not in there and other.name not in before
            if is_free and one.field.tag == other.field.tag and _has_same_type(one, other):
                names[one.name] = other.name
    return names


def _has_same_type(old: FieldPlan, new: FieldPlan) -> bool:
    """Return whether two fields have the same kind of type and the same size, so that one may be the other renamed."""
    return type(old.field.type) is type(new.field.type) and old.size == new.size


_COMPARED_BY_FIELDS = frozenset(
    ["span", "doc", "name", "enum", "only", "members", "at_least", "nesting", "null", "compression", "layout", "element",
     "cases", "steps", "unknown", "choice", "by", "given", "version", "until", "counted_by", "present"]
)  # fmt: skip
"""Attributes of types that :class:`FieldComparison` compares, because not every difference breaks."""


def _canonical_program(
    plan: Plan, layout: LayoutPlan, names: Mapping[str, str]
) -> Iterator[object]:
    """Yield a comparable form of each operation that reads bytes of the layout, in order, with
    field names replaced by ``names``. Requirements and absent fields are left out.
    """
    for op in read_program(plan, layout).ops:
        form = _canonical_op(op, names)
        if form is not None:
            yield form


def _canonical_op(op: ReadOp, names: Mapping[str, str]) -> object:
    """Return a comparable form of a read operation, with field names replaced by ``names``. Return
    None if it reads no bytes: requirements, absent fields and padding that is always empty. Held
    layouts, cases and tagged fields are not part of it.
    """
    if isinstance(op, Require | Absent) or (
        isinstance(op, Padding) and _is_empty_padding(op.field)
    ):
        return None
    if isinstance(op, When):
        forms = (_canonical_op(one, names) for one in op.then)
        inner = tuple(form for form in forms if form is not None)
        return ("When", _canonical(op.field, names), named_shape(op.condition, names), inner)
    if isinstance(op, Tags):
        return "Tags"
    parts: list[object] = [type(op).__name__]
    for attribute in dataclass_fields(op):
        value = getattr(op, attribute.name)
        if attribute.name in ("cases", "steps", "element", "layout", "when", "any_version"):
            continue
        if attribute.name == "last":
            value = names.get(value, value)
        parts.append(_canonical(value, names))
    return tuple(parts)


def _canonical(value: object, names: Mapping[str, str]) -> object:
    """Return a comparable form of an attribute of a read operation: fields by new name, byte order
    and checksum, dataclasses attribute by attribute, other values unchanged.
    """
    if isinstance(value, FieldPlan):
        f = value.field
        order = f.endian if has_byte_order(f) else ""
        return (names.get(f.name, f.name), order, f.checksum, f.mask)
    if is_dataclass(value):
        return (
            type(value).__name__,
            *(
                _canonical(getattr(value, attribute.name), names)
                for attribute in dataclass_fields(value)
                if attribute.name not in _COMPARED_BY_FIELDS
            ),
        )
    return value
