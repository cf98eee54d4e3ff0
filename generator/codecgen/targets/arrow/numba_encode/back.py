"""Whether a reader finds in an entry what was written: the rules of its fields, and the columns themselves."""

from __future__ import annotations

import re
from dataclasses import replace

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.expression import Expression
from codecgen.targets.arrow.code import Unsupported
from codecgen.targets.arrow.expressions import Operand, Refused, negated
from codecgen.targets.arrow.naming import BEFORE, ENTRY, ITEM, NULL, ROW
from codecgen.targets.arrow.numba_encode.fits import Fits
from codecgen.targets.arrow.numba_encode.rowwise import BYTES_LIKE
from codecgen.targets.arrow.numba_encode.written import FieldNames, Part, Written


class Back(Fits):
    """Writes checks of what is read back. ``varying`` gathers the columns that readers make of each row, not of the entry
    alone."""

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        super().__init__(plan, view)
        self.varying: set[str] = set()

    def rules(
        self,
        layout: LayoutPlan,
        parts: tuple[Part, ...],
        written: Written,
        case: CasePlan,
        prefix: str,
    ) -> None:
        """What the format says of its values holds for those that are written."""
        for part in parts:
            f = part.field
            if part.kind in ("absent", "length", "count", "checksum", "rows"):
                continue
            for expression, wanted in ((f.valid, True), (f.refuse, False)):
                if expression is None:
                    continue
                try:
                    value = self.rule(expression, written, layout, prefix)
                except Refused as error:
                    raise Unsupported(error.reason, f) from None
                if value.constant is not None and bool(value.constant) == wanted:
                    continue
                condition = negated(value) if wanted else value.text
                leaf = self.blame(expression, written)
                if part.leaf is not None:
                    leaf = part.leaf.index
                self.stop(condition, leaf, f)

    def read_back(
        self,
        case: CasePlan,
        written: Written,
        running: list[Part],
        ends: dict[str, str],
        leaves: list[Leaf],
    ) -> None:
        """A reader finds the columns as they are, for this row and (``before``) for those that are in already."""
        for leaf in leaves:
            expression = case.rows.values.get(leaf.column.name)
            if leaf.column.name in self.places():
                continue
            if expression is not None and written.identical(leaf, expression):
                continue
            given = f"{self.part(leaf, 'given')} and "
            n = ROW + leaf.name
            if leaf.column.type == "list":
                if expression is None or not self.is_written(leaf, written):
                    self.stop(f"{given}{n} > 0", leaf.index)
            elif leaf.column.type in BYTES_LIKE:
                if expression is None or not self.is_written(leaf, written):
                    self.stop(f"{given}{n} >= 0", leaf.index)
            elif expression is None:
                self.stop(f"{given}not {NULL}{n}", leaf.index)
            else:
                self.number_back(leaf, expression, written, case, running, ends)

    def is_written(self, leaf: Leaf, written: Written) -> bool:
        return any(part.leaf is leaf for part in written.item)

    def number_back(
        self,
        leaf: Leaf,
        expression: Expression,
        written: Written,
        case: CasePlan,
        running: list[Part],
        ends: dict[str, str],
    ) -> None:
        prefix = ITEM if case.array is None else ENTRY
        names = FieldNames(self.plan, case.entry, prefix, case, parts=written.known)
        value = names.value(expression)
        n = ROW + leaf.name
        text = value.text if value.plain else f"({value.text})"
        if leaf.column.type == "bool" and value.constant is None and not text.endswith("& 1)"):
            text = f"int({value.text})"
        moving = [ENTRY + part.name for part in running]
        moving += [name for name in ends if name.startswith("last_")]
        moving = [name for name in moving if re.search(rf"\b{name}\b", f"{text} {value.null}")]
        if moving or ITEM in f"{text} {value.null}":
            self.varying.add(leaf.name)
        if value.branches or leaf.column.nullable:
            with self.code.block(f"if {self.part(leaf, 'given')}:"):
                self.back(value, n, leaf)
                if moving:
                    self.back(_earlier(value, moving), n, leaf)
            return
        for variant in (text, _before(text, moving)) if moving else (text,):
            test = f"{n} != {variant}" if value.constant is not None else f"{variant} != {n}"
            self.stop(f"{self.part(leaf, 'given')} and {test}", leaf.index)

    def back(self, value: Operand, n: str, leaf: Leaf) -> None:
        """Work out what is read, and compare."""
        if not leaf.column.nullable:
            self.assign("back", value)
            self.stop(f"back != {n}", leaf.index)
            return
        null = value.null or "False"
        self.stop(f"{NULL}{n} != ({null})", leaf.index)
        if value.constant is None:
            self.assign("back", value)
            self.stop(f"not {NULL}{n} and back != {n}", leaf.index)
        elif null != "True":
            self.stop(f"not {NULL}{n} and {n} != {value.text}", leaf.index)

    def ends(self, case: CasePlan, written: Written) -> dict[str, str]:
        """Fields of the first and the last element that readers use: variable -> the field's value in the row."""
        if case.array is None:
            return {}
        names = FieldNames(self.plan, case.entry, ENTRY, case, parts=written.known)
        for leaf, expression in written.leaves_read():
            if expression is not None and leaf.column.type not in (*BYTES_LIKE, "list"):
                names.value(expression)
        out = {}
        for variable, (_, field) in names.ends.items():
            part = written.known.get((ITEM, field))
            known = part.value if part is not None else None
            out[variable] = (
                str(known.constant)
                if known is not None and known.constant is not None
                else ITEM + field
            )
        return out


def _before(text: str, names: list[str]) -> str:
    for name in names:
        text = re.sub(rf"\b{name}\b", f"{BEFORE}{name}", text)
    return text


def _earlier(value: Operand, names: list[str]) -> Operand:
    """A value before the row at hand was looked at."""
    branches = tuple((_before(a, names), _before(b, names)) for a, b in value.branches)
    null = None if value.null is None else _before(value.null, names)
    return replace(value, text=_before(value.text, names), null=null, branches=branches)
