"""How many bytes rows take, and how many there is room for."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan
from codecgen.schema.model import INTEGERS, ArrayType, BytesType
from codecgen.targets.arrow.code import Unsupported
from codecgen.targets.arrow.naming import ITEM, ROW, value_of
from codecgen.targets.arrow.numba_encode.back import Back
from codecgen.targets.arrow.numba_encode.rowwise import (
    LONGEST_VARINT,
    MOST_BYTES,
    largest,
    length_name,
    size_of_number,
)
from codecgen.targets.arrow.numba_encode.written import Part, Written, range_of


class Sizes(Back):
    """Writes sums of bytes."""

    def fixed(self, layout: LayoutPlan, parts: tuple[Part, ...]) -> Iterator[tuple[Part, int]]:
        """The bytes of each part that are the same in all rows."""
        for part in parts:
            f = part.field
            if part.kind == "absent" or part.kind == "rows":
                yield part, 0
            elif part.kind in ("number", "bits", "length", "count", "checksum"):
                yield part, part.plan.size or 0
            elif part.kind == "bytes":
                assert isinstance(f.type, BytesType)
                name = f.type.length
                yield part, INTEGERS[str(name)][0] if name in INTEGERS else 0
            else:
                assert isinstance(f.type, ArrayType)
                name = f.type.count or ""
                yield part, INTEGERS[name][0] if name in INTEGERS else 0

    def sizes(self, case: CasePlan, written: Written) -> None:
        """The bytes of the row; it goes into the entry if there is room."""
        add = self.code.add
        terms: list[str] = []
        total = 0
        ahead = 0
        length: Part | None = None
        for part, const in self.fixed(case.element, written.item):
            if part.kind == "length" and part.plan.size is None:
                run = part.plan.measures
                fields = case.element.fields
                at = [fp.name for fp in fields].index(part.name)
                to_end = run is not None and run.last in (None, fields[-1].name)
                if length is not None or terms or not to_end or run is None:
                    raise Unsupported("a length in front of a part of the row", part.field)
                if at + 1 >= len(fields) or run.first != fields[at + 1].name:
                    raise Unsupported(
                        "a length that is not in front of what it measures", part.field
                    )
                length, ahead, total = part, total, 0
                continue
            total += const
            terms += self.terms(part, case)
        add(f"taken = {total}")
        for term in terms:
            add(f"taken += {term}")
        if length is not None:
            name = getattr(length.field.type, "name", "varint")
            if largest(name) < MOST_BYTES:
                self.stop(f"taken > {largest(name)}", None, length.field)
            add("store_32(sizes, taken)")
            add("sizes += 4")
            behind = f" + {ahead}" if ahead else ""
            add(f"taken += size_{name}(taken){behind}")
        self.lengths_hold(case, written)
        limit = self.most_of(case)
        self.stop(f"taken > {limit}", None)
        self.stop("size + taken > bytes_room and row > start", None)
        add("size += taken")

    def lengths_hold(self, case: CasePlan, written: Written) -> None:
        """Lengths of fixed size that are small can say how long the row is."""
        for part in written.item:
            if part.kind != "length" or part.plan.size is None:
                continue
            high = range_of(part.field)[1]
            if high >= MOST_BYTES:
                continue
            run = part.plan.measures
            first = None if run is None else case.element.field(run.first)
            to_end = run is not None and run.last in (None, case.element.fields[-1].name)
            if first is None or first.offset is None or not to_end:
                raise Unsupported("a length in front of a part of the row", part.field)
            behind = f" - {first.offset}" if first.offset else ""
            self.stop(f"taken{behind} > {high}", None, part.field)

    def terms(self, part: Part, case: CasePlan) -> list[str]:
        """The bytes of a part that depend on its value."""
        f = part.field
        if part.kind == "number" and part.plan.size is None:
            assert part.value is not None
            value = part.value
            text = str(value.constant) if value.constant is not None else ITEM + part.name
            return [size_of_number(str(getattr(f.type, "name", "")), text)[1]]
        if part.kind == "count" and part.plan.size is None:
            return [size_of_number(str(getattr(f.type, "name", "")), self.count_of(part, case))[1]]
        if part.kind == "bytes":
            if part.leaf is None:
                return [t for t in [size_of_number(length_name(f), "-1")[1]] if t]
            return [self.bytes_size(f, value_of(part.leaf))[1]]
        if part.kind == "list":
            assert isinstance(f.type, ArrayType)
            count = ROW + part.leaf.name if part.leaf is not None else "0"
            out = [] if f.type.count is None else [size_of_number(f.type.count, count)[1]]
            if part.leaf is not None:
                out.append(f"{self.part(part.leaf, 'size')}")
            return [t for t in out if t]
        return []

    def count_of(self, part: Part, case: CasePlan) -> str:
        """The number of elements that a field of an element counts."""
        written = self.written[case.number]
        counted = written.known.get((ITEM, part.field.counts or ""))
        leaf = counted.leaf if counted is not None else None
        return ROW + leaf.name if leaf is not None else "0"

    def most_of(self, case: CasePlan) -> int:
        """The most bytes that the rows of one entry can have, before they are compressed."""
        return min(MOST_BYTES - self.head_size(case), self.room(case))

    def room(self, case: CasePlan) -> int:
        """What the lengths around the rows leave for them."""
        if case.array is None:
            return MOST_BYTES
        room = MOST_BYTES
        for part in self.written[case.number].entry:
            if part.kind == "length":
                room = min(room, largest(str(getattr(part.field.type, "name", ""))))
        type_ = case.array.field.type
        assert isinstance(type_, ArrayType)
        if type_.length is not None:
            room = min(room, largest(type_.length))
        return room - self.head_size(case)

    def head_size(self, case: CasePlan) -> int:
        """The most bytes of an entry beside its rows."""
        if case.array is None:
            return 0
        total = 0
        for part, const in self.fixed(case.entry, self.written[case.number].entry):
            total += const
            if part.kind != "absent" and not const:
                total += 2 * LONGEST_VARINT
        return total

    def most_rows(self, case: CasePlan) -> int:
        """How many rows an entry can count."""
        if case.array is None:
            return MOST_BYTES
        most = MOST_BYTES
        for part in self.written[case.number].entry:
            if part.kind == "count" and part.field.counts == case.array.name:
                most = min(most, range_of(part.field)[1])
        type_ = case.array.field.type
        assert isinstance(type_, ArrayType)
        return min(most, largest(type_.count)) if type_.count is not None else most
