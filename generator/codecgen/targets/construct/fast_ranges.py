"""Prints how fast builders write lengths and checksums, whose values are known after other fields."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import FieldRange, ScalarType
from codecgen.targets.construct.fast_given_values import GivenValues
from codecgen.targets.construct.fast_module import Unsupported
from codecgen.targets.construct.fast_struct_runs import struct_code
from codecgen.targets.construct.fast_value_writer import ValueWriter


def is_computed(fp: FieldPlan) -> bool:
    """Return whether a field is a length or a checksum, whose value is known last."""
    return fp.measures is not None or fp.field.checksum is not None


def is_varint_length(fp: FieldPlan) -> bool:
    """Return whether a field is a length of variable size."""
    type_ = fp.field.type
    varint = isinstance(type_, ScalarType) and SCALARS[type_.name].is_variable
    return varint and fp.measures is not None


class RangeWriter:
    """Prints the writing of the lengths and checksums of a layout, and of the ranges that they
    measure and cover. Those of fixed size are zeros until their range ends; the bytes that a varint
    measures are built apart.

    Attributes:
        ranges: (length or checksum field, name of the range, range) for each range, without those
            of varint lengths.
        varint_lengths: The lengths of variable size.
        opened: The varints whose ranges are open, the innermost last, each with the variable of
            the bytes around its range.
        buffers: The variables of positions, each with the variable of the bytes it is a position in.
    """

    def __init__(self, layout: LayoutPlan, given: GivenValues, values: ValueWriter) -> None:
        self.layout = layout
        self.given = given
        self.values = values
        self.module, self.source, self.run = values.module, values.source, values.run
        self.ranges = tuple(_iterate_ranges(layout))
        self.varint_lengths = [fp for fp in layout.in_order if is_varint_length(fp)]
        self.opened: list[tuple[FieldPlan, str]] = []
        self.buffers: dict[str, str] = {}

    def check(self) -> None:
        """Raise Unsupported for a length or checksum that is tagged or no scalar, a range that
        begins or ends with a tagged field, a varint whose range does not begin right after it, a
        length that measures a varint length before it, and a checksum that counts bytes as zero or
        covers itself. Conditional ones are tested by the caller.
        """
        fields = self.layout.in_order
        for at, fp in enumerate(fields):
            if is_computed(fp) and not isinstance(fp.field.type, ScalarType):
                raise Unsupported
            if is_varint_length(fp) and fp.field.checksum is not None:
                raise Unsupported
            for part in (*fp.covers, *(() if fp.measures is None else (fp.measures,))):
                names = [one.name for one in fields]
                if part.first not in names or part.last not in (None, *names):
                    raise Unsupported
                first = names.index(part.first)
                if is_varint_length(fp) and first != at + 1:
                    raise Unsupported
                if fp.measures is part and any(map(is_varint_length, fields[first : at + 1])):
                    raise Unsupported
            zero = any(part.zero for part in fp.covers)
            if zero or (fp.covers and fp in self.layout.covered(fp)):
                raise Unsupported
        if any(is_computed(fp) for fp in self.layout.tagged):
            raise Unsupported

    def reserve(self, fp: FieldPlan, name: str) -> None:
        """Print the writing of zeros in the place of a length or checksum of the type ``name``,
        which are overwritten later. Print nothing for a varint length, which is written when its
        range ends.
        """
        if is_varint_length(fp):
            return
        position = self.source.temporary(f"{fp.name}_at")
        self.buffers[position] = self.run.out
        self.run.mark(position)
        scalar = SCALARS[name]
        code = struct_code(scalar)
        zeros = f"bytes({scalar.width})" if code.endswith("s") else "0"
        self.run.append(zeros, code, fp.field.endian)

    def begin(self, fp: FieldPlan) -> None:
        """Print the start of each range that begins with a field, if any: a new bytearray for the
        bytes that a varint measures, otherwise the assignment of the position to a variable.
        """
        for m in self.varint_lengths:
            if m.measures is not None and m.measures.first == fp.name:
                self.run.flush()
                self.opened.append((m, self.run.out))
                self.run.out = self.source.temporary(f"{m.name}_bytes")
                self.source.emit(f"{self.run.out} = bytearray()")
        for _, name, part in self.ranges:
            if part.first == fp.name:
                position = self.source.temporary(f"{name}_from")
                self.buffers[position] = self.run.out
                self.run.mark(position)

    def end(self, fp: FieldPlan) -> None:
        """Print the end of each range that ends with a field, if any: a length overwrites its
        zeros, a varint length is written with the bytes that it measures, the end of a checksum's
        range gets a variable. Raise Unsupported if only one end of a range lies in the bytes that a
        varint measures; ranges wholly inside or around these are fine.
        """
        end = self.layout.in_order[-1].name
        ending = [one for one in self.ranges if (one[2].last or end) == fp.name]
        while True:
            for one in reversed(ending):
                if self.buffers.get(self.source.temporary(f"{one[1]}_from")) == self.run.out:
                    self._end_range(*one)
                    ending = [other for other in ending if other is not one]
            if not self.opened:
                break
            m, around = self.opened[-1]
            assert m.measures is not None
            if (m.measures.last or end) != fp.name:
                break
            self.opened.pop()
            self.run.flush()
            measured, self.run.out = self.run.out, around
            self.source.emit(f"{self.source.local(m.name)} = len({measured})")
            assert isinstance(m.field.type, ScalarType)
            self.values.varint(self.source.local(m.name), SCALARS[m.field.type.name])
            self.source.emit(f"{self.run.out} += {measured}")
            self.given.known.add(m.name)
        if ending:
            raise Unsupported

    def _end_range(self, fp: FieldPlan, name: str, part: FieldRange) -> None:
        """Print the end of a range: a length overwrites its zeros; for a checksum, the position
        after the range is assigned to a variable.
        """
        if fp.field.checksum is not None and part is not fp.measures:
            self.run.mark(self.source.temporary(f"{name}_to"))
            return
        self.run.flush()
        start = self.source.temporary(f"{name}_from")
        self.source.emit(f"{self.source.local(fp.name)} = len({self.run.out}) - {start}")
        self._fill(fp)

    def _fill(self, fp: FieldPlan) -> None:
        """Print that the value of a length or checksum, from its variable, overwrites the zeros
        that were written for it, and add the field to ``known``.
        """
        assert isinstance(fp.field.type, ScalarType)
        scalar, endian = SCALARS[fp.field.type.name], fp.field.endian
        target, position = self.source.local(fp.name), self.source.temporary(f"{fp.name}_at")
        out, code = self.buffers[position], struct_code(scalar)
        if code.endswith("s"):
            text = self.values.fixed_text(target, scalar, endian)
            self.source.emit(f"{out}[{position} : {position} + {scalar.width}] = {text}")
        else:
            pack = self.module.packer(code, endian if scalar.width > 1 else "big", "pack_into")
            self.source.emit(f"{pack}({out}, {position}, {target})")
        self.given.known.add(fp.name)

    def finish(self) -> None:
        """Print the computation of the checksums, inner ones first; each overwrites its zeros.
        Raise Unsupported if a checksum, or a range that it covers, is among the bytes that a varint
        measures.
        """
        for fp in self.layout.checksums():
            parts = []
            stored = self.source.temporary(f"{fp.name}_at")
            for one, name, part in self.ranges:
                if one is fp and part is not fp.measures:
                    start, stop = (self.source.temporary(f"{name}_{end}") for end in ("from", "to"))
                    if self.buffers[start] != "out" or self.buffers[stored] != "out":
                        raise Unsupported
                    parts.append(f"out[{start}:{stop}]")
            codec = self.source.field_codec(fp.name)
            compute = self.source.constant(fp.name, f"{self.module.use('checksum_of')}({codec})")
            covered = parts[0] if len(parts) == 1 else f'b"".join([{", ".join(parts)}])'
            self.source.emit(f"{self.source.local(fp.name)} = {compute}({covered})")
            self._fill(fp)


def _iterate_ranges(layout: LayoutPlan) -> Iterator[tuple[FieldPlan, str, FieldRange]]:
    """Yield (length or checksum field, name of the range, range) for each range that a length
    measures or a checksum covers, in field order. Skip ranges of varint lengths. The name is that
    of the field, with ``_0``, ``_1`` and so on if a checksum covers several ranges.
    """
    for fp in layout.in_order:
        if fp.measures is not None and not is_varint_length(fp):
            yield fp, fp.name, fp.measures
        for i, part in enumerate(fp.covers):
            yield fp, f"{fp.name}_{i}" if len(fp.covers) > 1 else fp.name, part
