"""Prints how fast parsers compare checksums."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.targets.construct.fast_function import FunctionSource
from codecgen.targets.construct.fast_module import FastModule, Unsupported
from codecgen.targets.construct.fast_struct_runs import UnpackedRun
from codecgen.targets.construct.fast_value_reader import Windows


class ChecksumVerifier:
    """Prints the comparison of the checksums of a layout with the bytes that they cover: before
    these bytes are read where that is possible, otherwise behind all fields.
    """

    def __init__(
        self,
        module: FastModule,
        layout: LayoutPlan,
        source: FunctionSource,
        run: UnpackedRun,
        windows: Windows,
    ) -> None:
        """Raise Unsupported if a checksum reads some bytes as zero."""
        self._module = module
        self._layout = layout
        self._source = source
        self._run = run
        self._windows = windows
        self._covered = _covered_fields(layout)
        self._verified: set[str] = set()

    def mark(self, fp: FieldPlan, after: bool) -> None:
        """Print the pending run and the assignment of the position before a field (or, with
        ``after``, behind it) to a variable if a checksum covers bytes from (or to) there. If the
        checksum can be compared before these bytes are read, print the comparison instead.
        Otherwise print nothing.
        """
        for name, parts in self._covered.items():
            for i, (first, last) in enumerate(parts):
                if fp.name == (last if after else first):
                    self._run.flush()
                    if self._is_verified_ahead(name, after):
                        self._verify(name, [f"data[pos:{self._windows.end}]"])
                        self._verified.add(name)
                        continue
                    if name in self._verified:
                        continue
                    self._source.emit(f"{self._position(name, i, after)} = pos")

    def finish(self) -> None:
        """Print the comparison of each checksum that is not compared yet, with the bytes between
        the positions that :meth:`mark` assigned.
        """
        for name, parts in self._covered.items():
            if name not in self._verified:
                positions = [
                    (self._position(name, i, False), self._position(name, i, True))
                    for i in range(len(parts))
                ]
                self._verify(name, [f"data[{start}:{stop}]" for start, stop in positions])

    def _position(self, name: str, i: int, after: bool) -> str:
        """Return the variable of the position where range ``i`` of a checksum begins or ends."""
        return self._source.temporary(f"{name}_{'to' if after else 'from'}_{i}")

    def _is_verified_ahead(self, name: str, after: bool) -> bool:
        """Return whether the checksum ``name`` can be compared before the bytes that it covers are
        read: it stands before them, covers one range to the end of the layout, and the innermost
        window ends there. Return False with ``after``.
        """
        parts = self._covered[name]
        fields = [fp.name for fp in self._layout.in_order]
        to_end = len(parts) == 1 and parts[0][1] == fields[-1]
        known = to_end and bool(self._windows.reaches_end) and self._windows.reaches_end[-1]
        return known and not after and fields.index(name) < fields.index(parts[0][0])

    def _verify(self, name: str, ranges: list[str]) -> None:
        """Print that the function raises Irregular if the checksum of ``ranges`` (expressions for
        bytes, joined in order) differs from the value of the field ``name``. A conditional checksum
        field is not compared if it is None.
        """
        codec = self._source.field_codec(name)
        compute = self._source.constant(name, f"{self._module.use('checksum_of')}({codec})")
        stored = self._source.local(name)
        covered = ranges[0] if len(ranges) == 1 else f'b"".join([{", ".join(ranges)}])'
        fp = self._layout.field(name)
        present = f"{stored} is not None and " if fp is not None and fp.when is not None else ""
        self._source.emit_raise_if(f"{present}{compute}({covered}) != {stored}")


def _covered_fields(layout: LayoutPlan) -> dict[str, list[tuple[str, str]]]:
    """Return, for each checksum, the names of the first and last field (inclusive) of each range
    that it covers. An open range ends with the last field of the layout. Raise Unsupported if a
    checksum reads some bytes as zero.
    """
    out: dict[str, list[tuple[str, str]]] = {}
    last = layout.in_order[-1].name if layout.in_order else ""
    for fp in layout.fields:
        if not fp.covers:
            continue
        if any(part.zero for part in fp.covers) or fp.field.zero:
            raise Unsupported
        out[fp.name] = [(part.first, part.last or last) for part in fp.covers]
    return out
