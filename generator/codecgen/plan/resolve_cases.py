"""What a path of a view names in the cases of a choice: `body.moved.to` is the field `to` of the layout `moved`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import layout_with
from codecgen.plan.types import Type
from codecgen.schema.expression import Path
from codecgen.schema.lookup import exists_in
from codecgen.schema.model import Field
from codecgen.schema.types import BitsType, ChoiceType, Reference, StructType


class CaseResolver(Resolver):
    """Finds the fields of cases. A case is null where there is another one, or none, and so is what is in it."""

    def inside(
        self,
        f: Field,
        names: tuple[str, ...],
        owner: nodes.Owner,
        holders: tuple[Field, ...],
        versions: Iterable[int | None],
        path: Path,
        nullable: bool = False,
    ) -> nodes.FieldValue | nodes.BitValue:
        versions = tuple(versions)
        choice = f.in_versions(versions)
        type_ = choice.type
        if not names or not isinstance(type_, ChoiceType) or layout_with(type_, names[0]):
            value = super().inside(f, names, owner, holders, versions, path, nullable)
            self.see_value(value, path)
            return value
        refs = _cases_called(type_, names[0])
        if not refs:
            message = f'"{names[0]}" is no case of "{f.name}"'
            raise self.fail("C014", message, path, f"its cases are {_cases(type_)}")
        if holders:
            message = f'the cases of "{f.name}" are out of reach: a layout in "{holders[0].name}" holds it'
            raise self.fail(
                "C022", message, path, "name cases of what is a field of the row itself"
            )
        self.use(f.name, f.since, path)
        case = Field(names[0], StructType(refs[0]), f.span)
        there = nodes.FieldValue(case, Type("layout"), owner, (choice,))
        known = self.facts.there(there)
        if len(names) == 1:
            return replace(there, type=there.type.or_null(not known))
        ref = refs[0] if len(refs) == 1 else replace(refs[0], version=None)
        inner = self.field_in(ref, names[1:], path, owner)
        held = {v for one in refs for v in self.scope.versions_in(type_, one)}
        there_in = [v for v in sorted(held, key=lambda v: v or 0) if exists_in(inner, v)]
        nullable = not known or len(there_in) < len(held)
        around = (choice, case)
        return self.inside(inner, names[2:], owner, around, there_in, path, nullable)

    def see_value(self, value: nodes.FieldValue | nodes.BitValue, path: Path) -> None:
        """A finding for bits of a case that are to be one number: nothing says where they were read from."""
        type_ = value.field.type if isinstance(value, nodes.FieldValue) else None
        if isinstance(type_, BitsType) and nodes.case_in(value) is not None:
            message = f'"{path}" is a set of bits in a case'
            help = f"name one of them: {', '.join(m.name for m in type_.members)}"
            raise self.fail("C022", message, path, help)


def _cases_called(type_: ChoiceType, name: str) -> list[Reference]:
    """The versions of the layout of that name; one of another package is called as it is there."""
    own = [ref for ref in type_.layouts if ref.layout == name]
    others = [ref for ref in type_.layouts if _short(ref) == name]
    return own or [ref for ref in others if ref.layout == others[0].layout]


def _short(ref: Reference) -> str:
    return ref.layout.rpartition(".")[2]


def _cases(type_: ChoiceType) -> str:
    """The names of the cases, each once."""
    return ", ".join({_short(ref): None for ref in type_.layouts})
