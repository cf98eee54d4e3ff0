"""Random views into payloads: keys that say what they are, the values that go with them, and columns of both."""

from __future__ import annotations

from collections.abc import Iterator

from tests.laws.conditions import Conditions, Seen
from tests.laws.draws import Draw
from tests.laws.keys import Kit, Made, Several
from tests.laws.layouts import Maker
from tests.laws.names import Names
from tests.laws.seen import seen_of
from tests.laws.views import Source, ViewMaker
from tests.laws.world import Tree

PARTS = (("key", "value"), ("key", "value"), ("x", "row_of"), ("value",), ("head", "n", "out"))
NUMBERS = (0, 1, 2, 7, 100)


class PayloadMaker(ViewMaker):
    """Makes layouts, choices of them, and a view into payloads that are of these."""

    def __init__(self, kit: Kit, names: Names) -> None:
        super().__init__(kit, names)
        self.d: Draw = kit.d
        self.written = False

    def documents(self) -> Iterator[tuple[str, Tree]]:
        d = self.d
        self.parts = d.pick(PARTS)
        self.nulls: set[str] = set()
        decided = len(self.parts) > 1 and not d.chance(4)
        numbers = list(dict.fromkeys(d.pick(NUMBERS) for _ in range(d.number(1, 3))))
        cases: list[dict[str, Made]] = [{} for _ in (numbers if decided else [None])]
        of: dict[str, str] = {}
        self.elements: list[Made] = []
        for _ in range(d.number(0, 2)):
            self.elements.append(self.element())
            yield "layout", self.elements[-1].tree
        if d.chance(2):
            yield from self.bodies()
        enum = self.names.fresh()
        if decided:
            values = {f"n_{number}": number for number in numbers}
            yield "enums", {"enums": {enum: {"doc": "Kinds.", "values": values}}}
        for i, part in enumerate(self.parts):
            if not decided or (i > 1 and d.chance(2)):
                made = self.held(None)
                yield "layout", made.tree
                of[part] = made.name
                for case in cases:
                    case[part] = made
                continue
            choice: Tree = {"choice": self.names.fresh(), "cases": {}}
            choice |= {"by": "kind"} if i == 0 else {"given": {"value": enum}, "by": "value"}
            for number, case in zip(numbers, cases, strict=True):
                if i and len(cases) > 1 and case is not cases[0] and d.chance(4):
                    case[part] = cases[0][part]
                else:
                    case[part] = self.held(number if i == 0 else None)
                    yield "layout", case[part].tree
                made = case[part]
                outside = made.versions and not made.in_band
                ref = f"{made.name}@{made.versions[0]}" if outside and made.versions else made.name
                choice["cases"][str(number) if i == 0 else f"n_{number}"] = ref
            of[part] = choice["choice"]
            yield "choice", choice
        for i, case in enumerate(cases):
            if i == 0 or not d.chance(4):
                self.payload(i, case, decided)
                if d.chance(4):  # others of the same, where the first ones are not
                    self.payload(10 + i, case, decided)
        if not self.columns:
            self.add(Source("row", "int64"), 0)
            self.rows[0]["columns"] = {self.columns[0].name: "row"}
        for column in self.columns:
            if len(column.given) < len(self.rows) and "list" not in column.tree:
                column.tree["nullable"] = True
        columns = {column.name: column.tree for column in self.columns}
        view: Tree = {"view": self.names.fresh(), "of": of, "columns": columns, "rows": self.rows}
        if not d.chance(8):
            view["kernels"] = True
        yield "view", view | ({"doc": "Of payloads."} if d.chance(4) else {})

    def bodies(self) -> Iterator[tuple[str, Tree]]:
        """A choice of layouts that kernels read, most of the time, which parts may hold."""
        d = self.d
        several = Several(self.names.fresh(), [], [])
        cases: Tree = {}
        for number in range(d.number(1, 3)):
            versions = (0, d.number(0, 2)) if d.chance(3) else None
            made = self.easy(
                Maker(
                    self.kit, self.names.fresh(), versions=versions, may_be_open=False, plain=True
                )
            )
            self.kit.made.append(made)
            yield "layout", made.tree
            several.told |= bool(made.versions and made.versions[1] and not made.in_band)
            cases[str(number)] = made.name
            several.cases.append(made)
            several.numbers.append(number)
        yield (
            "choice",
            {"choice": several.name, "given": {"value": "u8"}, "by": "value", "cases": cases},
        )
        self.kit.several.append(several)

    def held(self, number: int | None) -> Made:
        """A layout of a part; with a ``number`` that of the part that decides."""
        d = self.d
        versions = None
        if d.chance(3):
            low = d.number(0, 1)
            versions = (low, low + d.number(0, 2))
        plain = not d.chance(8)
        maker = Maker(
            self.kit, self.names.fresh(), versions=None if number else versions, plain=plain
        )
        if number is not None:
            maker.made.versions = None
            maker.fields["kind"] = {"type": "i16", "const": number}
            maker.names.taken.add("kind")
            maker.see("kind", maker.fields["kind"])
        made = self.easy(maker) if not d.chance(6) else maker.layout(d.number(1, 5))
        if number is not None:
            made.tree.pop("endian", None)
            for spec in made.tree["fields"].values():
                if isinstance(spec, dict):
                    spec.pop("endian", None)
        if number is None and made.versions and not made.in_band and len(self.parts) == 1:
            made.tree.pop("versions")
        self.kit.made.append(made)
        return made

    def easy(self, maker: Maker) -> Made:
        """A layout that kernels read, most of the time, perhaps with an array somewhere in it."""
        d = self.d
        maker.head()
        for _ in range(d.number(1, 3)):
            maker.one()
        if d.chance(2) and self.elements:
            name, count = maker.fresh(), d.pick(("u8", "i32", "compact", "varint"))
            spec: Tree = {"array": d.pick(self.elements).name, "count": count}
            if count != "u8" and d.chance(2):
                spec["null"] = 0 if count == "compact" else -1
            maker.fields[name] = spec
            maker.see(name, spec)
            if d.chance(2):
                maker.one()
        if self.kit.several and not maker.made.open and d.chance(2):
            name, body = maker.fresh(), maker.chosen(last=True)
            if body is not None:
                maker.fields[name] = body
                maker.see(name, body)
        return maker.finish()

    def element(self) -> Made:
        """A layout for arrays: text, bytes and numbers, perhaps with an array of another one."""
        d = self.d
        maker = Maker(self.kit, self.names.fresh(), may_be_open=False, plain=True)
        maker.fields = {"at_least_one": "u8"}
        maker.names.taken.add("at_least_one")
        maker.made.solid = True
        if d.chance(2):
            text = maker.fresh()
            maker.fields[text] = {d.pick(("string", "bytes")): d.pick(("u8", "i16", "compact"))}
            maker.see(text, maker.fields[text])
        for _ in range(d.number(0, 2)):
            maker.one()
        if d.chance(3) and self.elements:
            name = maker.fresh()
            maker.fields[name] = {"array": self.elements[0].name, "count": "u8"}
            maker.see(name, maker.fields[name])
        made = maker.finish()
        self.kit.made.append(made)
        return made

    def payload(self, number: int, made: dict[str, Made], decided: bool) -> None:
        """The rows of one kind of payload."""
        d = self.d
        rows: Tree = {"of": {part: one.name for part, one in made.items()}}
        if len(made) > 1 and d.chance(5):
            rows["of"].pop(self.parts[-1])
        named = list(rows["of"])
        may_be_null = {part for part in named if not (decided and part == self.parts[0])}
        there = {part for part in may_be_null if d.chance(3)}
        conditions = [f"{part} != null" for part in sorted(there)]
        may_be_null -= there
        in_cases = [
            source.text
            for part in named
            for name, spec in made[part].tree["fields"].items()
            if isinstance(spec, dict) and "choice" in spec
            for source in self.of_cases(f"{part}.{name}", spec)
            if source.type == "bool" and not source.part
        ]
        if in_cases and not d.chance(3):
            conditions.append(d.pick(in_cases))
        seen = list(self.seen(made, named))
        if d.chance(4) and seen:
            text = Conditions(d, seen).boolean(1)
            conditions += [] if text is None else [f"({text})"]
        if conditions:
            rows["when"] = " and ".join(conditions)
        sources: list[Source] = [Source("row", "int64")]
        for part in named:
            if part in may_be_null:
                sources.append(Source(f"{part} == null", "bool"))
            sources += self.of_part(part, made[part], part in may_be_null)
        arrays = [
            (f"{part}.{name}", held)
            for part in named
            for name, spec in made[part].tree["fields"].items()
            for held in self.kit.made
            if isinstance(spec, dict) and spec.get("array") == held.name and "versions" not in spec
            if not held.versions and "compressed" not in spec
        ]
        if arrays and not d.chance(3):
            rows["each"], held = d.pick(arrays)
            for name, spec in held.tree["fields"].items():
                sources += self.plain(self.source(name, spec, "item.", f"item.{name}"))
        values: Tree = {}
        for source in sources:
            if source.text in conditions:
                continue  # `check` knows that it holds
            column = self.column(source, number) if not d.chance(3) else None
            if column is not None:
                values[column.name] = source.text
        rows["columns"] = values
        self.rows.append(rows)

    def seen(self, made: dict[str, Made], named: list[str]) -> Iterator[Seen]:
        """Numbers of parts that conditions may ask for. Those that may not be there are null."""
        for part in named:
            for name, spec in made[part].tree["fields"].items():
                if isinstance(spec, dict) and isinstance(spec.get("type"), dict):
                    continue
                for one in seen_of(name, spec, None, self.kit.enums):
                    if one.kind == "int" and one.versions is None and "." not in one.path:
                        yield Seen(f"{part}.{name}", "int", (), False, None, type=one.type)

    def of_cases(self, path: str, spec: Tree) -> Iterator[Source]:
        """What is in some case of a choice."""
        several = next((s for s in self.kit.several if s.name == spec["choice"]), None)
        if several is None or "versions" in spec:
            return
        case = self.d.pick(several.cases)
        own = f"{path}.{case.name}"
        yield Source(f"{own} != null", "bool")
        for name, inner in case.tree["fields"].items():
            if name == several.by or name == case.name:
                continue
            for source in self.plain(self.source(name, inner, f"{own}.", f"{own}.{name}")):
                source.nullable = True
                yield source

    def of_part(self, part: str, made: Made, null: bool) -> Iterator[Source]:
        for name, spec in made.tree["fields"].items():
            if isinstance(spec, dict) and "choice" in spec:
                for source in self.of_cases(f"{part}.{name}", spec):
                    if null and source.type in ("list", "struct", "bool") and source.part:
                        source.text = f"if {part} == null then null else {source.text}"
                    yield source
                continue
            versions = spec.get("versions") if isinstance(spec, dict) else None
            found = self.plain(self.source(name, spec, f"{part}.", f"{part}.{name}"))
            for source in found:
                source.nullable |= null
                if source.type in ("list", "struct") and source.nullable:
                    source.text = f"if {part} == null then null else {source.text}"
                if versions is None or made.versions is None:
                    yield source
                elif made.in_band and source.tree is None:
                    low = versions.rstrip("+").partition("-")[0]
                    high = versions.partition("-")[2] or (low if versions == low else None)
                    holder = version_field(made)
                    test = f"{part}.{holder} >= {low}"
                    if high is not None:
                        test += f" and {part}.{holder} <= {high}"
                    yield Source(
                        f"if {test} then {source.text} else null", source.type, True, source.part
                    )

    def plain(self, sources: Iterator[Source]) -> list[Source]:
        """Without most of those that kernels do not have."""
        return [
            one
            for one in sources
            if one.type != "bool" or one.part.count(".") > 1 or self.d.chance(8)
        ]

    def source(self, name: str, spec: Tree | str, prefix: str, part: str) -> Iterator[Source]:
        if isinstance(spec, dict) and isinstance(spec.get("type"), dict):
            return  # another number in each version
        if isinstance(spec, dict) and "bits" not in spec and "'bits'" in str(spec):
            return  # the oracle has no numbers for bits inside of others
        yield from super().source(name, spec, prefix, part)

    def fields_of(self, name: object) -> Tree | None:
        """The fields of a layout, without bits: the oracle has no numbers for those inside of others."""
        found = super().fields_of(name)
        bits = [n for n, s in (found or {}).items() if isinstance(s, dict) and "'bits'" in str(s)]
        return None if found is None else {n: s for n, s in found.items() if n not in bits}


def version_field(made: Made) -> str:
    """The field that holds the version of a layout."""
    fields = made.tree["fields"].items()
    return next(n for n, spec in fields if isinstance(spec, dict) and spec.get("is") == "version")
