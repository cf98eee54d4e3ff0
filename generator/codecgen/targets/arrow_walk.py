"""The code that goes through the fields of a layout in the order of the bytes."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.schema.model import (
    Field,
    ScalarType,
)
from codecgen.targets.arrow_code import Sinks, Unsupported
from codecgen.targets.arrow_scope import Names
from codecgen.targets.arrow_values import Values


class Walk(Values):
    """Writes walks over all fields, with the windows that lengths open and the checksums over them."""

    def fields(
        self,
        layout: LayoutPlan,
        prefix: str,
        end: str,
        sinks: Sinks,
        needed: set[str],
        stop: str | None = None,
    ) -> str:
        """Go through the fields, up to (not with) the field ``stop``. The end of the window that is open then."""
        names = Names(self.plan, layout, prefix)
        windows: list[tuple[str, str | None]] = []  # (end around it, last field)
        covered = 0
        wanted = needed | set(sinks.leaves) | set(sinks.lists)
        fields = layout.fields
        for i, fp in enumerate(fields):
            f = fp.field
            end, opened = self.open_windows(layout, fp, prefix, end, windows)
            if opened:
                covered = 0
            self.checksums_at(layout, fp, prefix, end, windows)
            if f.name == stop:
                self.tighten(end, f)
                return end
            rest = {later.name for later in fields[i:]}
            if not self.checks and any(last is None for _, last in windows) and not rest & wanted:
                break  # nothing more is wanted, and it is known where the layout ends
            where = None if f.when is None else self.boolean(names, f.when, f)
            if where is not None and where.constant == 0:
                continue
            if where is not None and where.constant is None:
                covered = 0
                loose = self.loose
                with self.code.block(f"if {where.text}:"):
                    self.one(layout, fp, prefix, end, sinks, wanted, bounded=False)
                self.loose = max(loose, self.loose)
                before = len(self.code.lines)
                with self.code.block("else:"):
                    self.absent(f, prefix, sinks)
                if len(self.code.lines) == before + 2 and self.code.lines[-1].strip() == "pass":
                    del self.code.lines[-2:]
            else:
                if fp.size is not None and covered <= 0:
                    covered = self.bound(fields[i:], layout, end, f)
                self.one(layout, fp, prefix, end, sinks, wanted, bounded=covered > 0)
                covered = covered - fp.size if fp.size is not None else 0
            while windows and windows[-1][1] == f.name:
                self.fail(f"p != {end}", f)
                self.loose = 0
                end = windows.pop()[0]
                covered = 0
            self.checksums_behind(layout, fp, prefix)
        if stop is None:
            self.finish(layout, prefix, end, windows)
        return end

    def finish(
        self, layout: LayoutPlan, prefix: str, end: str, windows: list[tuple[str, str | None]]
    ) -> None:
        last = layout.fields[-1].field
        while windows:
            if self.checks:
                self.fail(f"p != {end}", last)
            else:
                self.code.add(f"p = {end}")
            self.loose = 0
            end = windows.pop()[0]
        self.tighten(end, last)

    # ------------------------------------------------------------ windows and checksums

    def open_windows(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[tuple[str, str | None]],
    ) -> tuple[str, bool]:
        opened = False
        for m in layout.fields:
            if m.measures is None or m.measures.first != fp.name:
                continue
            if m.field.when is not None:
                raise Unsupported("a length that may be left out", m.field)
            length = prefix + m.name
            self.fail(f"{length} < 0 or {length} > {end} - p", m.field)
            self.loose = 0
            self.ends += 1
            inner = f"end_{self.ends}"
            self.code.add(f"{inner} = p + {length}")
            last = m.measures.last
            if last == layout.fields[-1].name:
                last = None
            windows.append((end, last))
            end, opened = inner, True
        return end, opened

    def checksums_at(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[tuple[str, str | None]],
    ) -> None:
        """Where a run begins that a checksum covers: verify it when its end is known."""
        if not self.checks:
            return
        for c in layout.fields:
            if c.covers is None or c.field.checksum is None or c.covers.first != fp.name:
                continue
            if c.field.when is not None:
                raise Unsupported("a checksum that may be left out", c.field)
            last = c.covers.last
            if last in (None, layout.fields[-1].name):
                if not any(w[1] is None for w in windows):
                    raise Unsupported("a checksum over a run without a measured end", c.field)
                if self.mode == "open":
                    self.code.add(f"{prefix}{c.name}_at = p")
                    self.pending.append((c, end))
                else:
                    self.tighten(end, c.field)
                    self.verify(c, prefix, "p", f"{end} - p")
            else:
                self.code.add(f"{prefix}{c.name}_at = p")

    def checksums_behind(self, layout: LayoutPlan, fp: FieldPlan, prefix: str) -> None:
        if not self.checks:
            return
        for c in layout.fields:
            if c.covers is not None and c.field.checksum is not None:
                last = c.covers.last
                if last == fp.name and last != layout.fields[-1].name:
                    at = f"{prefix}{c.name}_at"
                    if layout.fields.index(c) > layout.fields.index(fp):
                        raise Unsupported("a checksum behind what it covers", c.field)
                    self.verify(c, prefix, at, f"p - {at}")

    def verify(self, c: FieldPlan, prefix: str, start: str, size: str, condition: str = "") -> None:
        """Compare a checksum, perhaps only under a condition."""
        stored = prefix + c.name
        if isinstance(c.field.type, ScalarType) and c.field.type.name != "u32":
            stored += " & 0xFFFFFFFF"
        self.fail(f"{condition}{c.field.checksum}({start}, {size}) != {stored}", c.field)

    def bound(self, fields: tuple[FieldPlan, ...], layout: LayoutPlan, end: str, f: Field) -> int:
        """Check once that a run of fields of fixed size is there. How many bytes they have."""
        starts = {m.measures.first for m in layout.fields if m.measures is not None}
        stops = {m.measures.last for m in layout.fields if m.measures is not None}
        total = 0
        for i, fp in enumerate(fields):
            if fp.size is None or fp.field.when is not None or (i and fp.name in starts):
                break
            total += fp.size
            if fp.name in stops:
                break
        self.fits(total, end, f)
        return total
