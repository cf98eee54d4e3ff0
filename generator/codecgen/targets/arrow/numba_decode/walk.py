"""The code that goes through the fields of a layout in the order of the bytes."""

from __future__ import annotations

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.schema.model import BytesType, Field, ScalarType
from codecgen.targets.arrow.code import Sinks, Unsupported
from codecgen.targets.arrow.columns import covered_from
from codecgen.targets.arrow.naming import END
from codecgen.targets.arrow.numba_decode.values import Values, Window
from codecgen.targets.arrow.scope import Names


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
        windows: list[Window] = []
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
            if not self.checks and any(w.last is None for w in windows) and not rest & wanted:
                break  # nothing more is wanted, and it is known where the layout ends
            self.window = windows[-1] if windows else None
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
            while windows and windows[-1].last == f.name:
                window = windows.pop()
                if window.when is None:
                    self.fail(f"p != {end}", f)
                    self.loose = 0
                else:
                    self.fail(f"({window.when}) and p != {end}", f)
                end = window.around
                covered = 0
            self.checksums_behind(layout, fp, prefix)
        if stop is None:
            self.finish(layout, prefix, end, windows)
        return end

    def finish(self, layout: LayoutPlan, prefix: str, end: str, windows: list[Window]) -> None:
        last = layout.fields[-1].field
        while windows:
            if self.checks:
                self.fail(f"p != {end}", last)
            else:
                self.code.add(f"p = {end}")
            self.loose = 0
            end = windows.pop().around
        self.tighten(end, last)

    # ------------------------------------------------------------ windows and checksums

    def open_windows(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[Window],
    ) -> tuple[str, bool]:
        opened = False
        for m in layout.fields:
            if m.measures is None or m.measures.first != fp.name:
                continue
            length = prefix + m.name
            self.ends += 1
            inner = f"end_{self.ends}"
            if m.field.when is not None:
                when = self.window_that_may_be(layout, fp, m, prefix, end, inner)
                windows.append(Window(end, fp.name, when))
                end, opened = inner, True
                continue
            self.fail(f"{length} < 0 or {length} > {end} - p", m.field)
            self.loose = 0
            self.code.add(f"{inner} = p + {length}")
            last = m.measures.last
            if last == layout.fields[-1].name:
                last = None
            windows.append(Window(end, last))
            end, opened = inner, True
        return end, opened

    def window_that_may_be(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        m: FieldPlan,
        prefix: str,
        end: str,
        inner: str,
    ) -> str:
        """The end of bytes whose length may be left out: then they reach as far as they can. The condition."""
        rest = isinstance(fp.field.type, BytesType) and fp.field.type.length == "rest"
        if m.measures is None or m.measures.last != fp.name or not rest or m.field.when is None:
            raise Unsupported("a length that may be left out", m.field)
        when = self.boolean(Names(self.plan, layout, prefix), m.field.when, m.field)
        length = prefix + m.name
        with self.code.block(f"if {when.text}:"):
            self.fail(f"{length} < 0 or {length} > {end} - p", m.field)
            self.code.add(f"{inner} = p + {length}")
        with self.code.block("else:"):
            self.code.add(f"{inner} = {end} - {self.behind(fp.field, layout)}")
        return when.text

    def checksums_at(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[Window],
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
                if not any(w.last is None for w in windows):
                    raise Unsupported("a checksum over a run without a measured end", c.field)
                if self.mode == "open":
                    self.code.add(f"{covered_from(prefix, c)} = p")
                    self.pending.append((c, end))
                else:
                    self.tighten(end, c.field)
                    self.verify(c, prefix, "p", f"{end} - p")
            else:
                self.code.add(f"{covered_from(prefix, c)} = p")

    def checksums_behind(self, layout: LayoutPlan, fp: FieldPlan, prefix: str) -> None:
        if not self.checks:
            return
        for c in layout.fields:
            if c.covers is not None and c.field.checksum is not None:
                last = c.covers.last
                at, behind = covered_from(prefix, c), f"{END}{prefix}{c.name}"
                follows = layout.fields.index(c) > layout.fields.index(fp)
                if last == fp.name and last != layout.fields[-1].name:
                    if follows:
                        self.code.add(f"{behind} = p")
                    else:
                        self.verify(c, prefix, at, f"p - {at}")
                elif c is fp and self.is_behind(c, layout):
                    self.verify(c, prefix, at, f"{behind} - {at}")

    def is_behind(self, c: FieldPlan, layout: LayoutPlan) -> bool:
        """Whether a checksum stands behind what it covers."""
        names = [field.name for field in layout.fields]
        last = None if c.covers is None else c.covers.last
        return last is not None and names.index(last) < names.index(c.name)

    def verify(self, c: FieldPlan, prefix: str, start: str, size: str, condition: str = "") -> None:
        """Compare a checksum, perhaps only under a condition."""
        stored = prefix + c.name
        if isinstance(c.field.type, ScalarType) and c.field.type.name != "u32":
            stored += " & 0xFFFFFFFF"
        test = f"{c.field.checksum}({start}, {size}) != {stored}"
        with self.code.both(*([condition] if condition else []), test):
            self.never(c.field)

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
