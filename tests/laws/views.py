"""Random views: layouts that stand one after the other, columns of their rows, and how rows are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.laws.column_trees import WIDTHS, column_of, names_in, number_column
from tests.laws.conditions import Conditions, Seen
from tests.laws.draws import Draw
from tests.laws.keys import Kit, Made
from tests.laws.layouts import Maker
from tests.laws.names import Names, column_allowed
from tests.laws.none import counted_arrays
from tests.laws.rules import draw_fills, draw_rules
from tests.laws.seen import SCALARS, seen_of
from tests.laws.world import INTEGERS, VARINTS, Tree, reach


@dataclass
class Column:
    """A column while it is made: which cases give it a value."""

    name: str
    tree: Tree
    given: set[int] = field(default_factory=set)
    alone: bool = False


@dataclass
class Source:
    """A value that a case can give: its type of column (or of ``tree``, for structs and lists), whether it may be null, and the
    field that it is, if it is one."""

    text: str
    type: str
    nullable: bool = False
    part: str = ""
    tree: Tree | None = None


class ViewMaker:
    """Makes layouts, a choice of them, and a view of the choice."""

    def __init__(self, kit: Kit, names: Names) -> None:
        self.kit = kit
        self.d: Draw = kit.d
        self.names = names
        self.columns: list[Column] = []
        self.rows: list[Tree] = []
        self.written = kit.d.chance(2)
        self.pending: list[
            tuple[Tree, Made, Made | None, str | None, list[tuple[Column, Source]]]
        ] = []

    def documents(self) -> Iterator[tuple[str, Tree]]:
        d = self.d
        self.by = d.pick(("kind", "x", "row"))
        self.type = d.pick(("u8", "i8", "u16", "i32", "i64"))
        self.endian = d.pick(("big", "little"))
        self.first = d.chance(2)
        self.lone = d.pick(("measured", "fixed", "open")) if d.chance(4) else ""
        cases: dict[str, str] = {}
        low, high = reach(self.type)
        numbers = [n for n in (1, 2, 0, 100, -1, low, high) if low <= n <= high]
        for i, number in enumerate(self.kinds(numbers)):
            entry, element, array = self.entry(number)
            if element is not None:
                yield "layout", element.tree
            yield "layout", entry.tree
            cases[str(number)] = (
                entry.name if entry.versions is None else f"{entry.name}@{entry.versions[0]}"
            )
            self.case(i, entry, element, array)
        of = next(iter(cases.values())) if self.lone else self.names.fresh()
        named: Tree = {"choice": of, "by": self.by, "cases": cases}
        if self.kit.releases and d.chance(4):
            named |= {"doc": "What stands there.", "since": {"doc_no": 8}}
        if not self.lone:
            yield "choice", named
        if not self.columns:
            self.add(Source("position", "int64"), 0)
            self.rows[0]["columns"] = {self.columns[0].name: "position"}
        for column in self.columns:
            if len(column.given) < len(self.rows) and "list" not in column.tree:
                column.tree["nullable"] = True
        for rows, entry, element, array, taken in self.pending:
            write = self.write(entry, element, array, taken)
            whole = self.defaults(entry, write["entry"], array)
            if whole and (element is None or self.defaults(element, write["item"], None)):
                rows["write"] = write
        columns = {column.name: column.tree for column in self.columns}
        view: Tree = {
            "view": self.names.fresh(),
            "of": of,
            "columns": columns,
            "rows": self.rows,
        }
        if d.chance(4):
            view["doc"] = "All of them."
        yield "view", view

    def kinds(self, numbers: list[int]) -> list[int]:
        """The numbers that tell the layouts apart."""
        d = self.d
        if self.lone:
            return [d.pick(numbers)]
        return list(dict.fromkeys(d.pick(numbers) for _ in range(d.number(1, 2))))

    # ------------------------------------------------------------ layouts

    def lone_entry(self) -> Made:
        """A layout without a length: of a fixed size, or one that ends where its fields end."""
        d = self.d
        plain = self.written or not d.chance(6)
        maker = Maker(self.kit, self.names.fresh(), may_be_open=False, plain=plain)
        maker.made.tree["endian"] = self.endian
        if self.lone == "open":
            maker.fields["at_least_one"] = {"type": d.pick(("u8", "i16", "varint"))}
            maker.see("at_least_one", maker.fields["at_least_one"])
            self.plain_array(maker)
            maker.block(d.number(1, 4), False, True)
        for _ in range(d.number(1, 4) if self.lone == "fixed" else 0):
            name = maker.fresh()
            spec: Tree = {"bytes": d.number(1, 9)}
            if not d.chance(6):
                spec = {"type": d.pick((*INTEGERS, "f32", "f64", "uuid", "bool"))}
                if d.chance(6) and spec["type"] in INTEGERS:
                    spec["valid"] = f"{name} < 100"
            maker.fields[name] = spec
            maker.see(name, spec)
        made = maker.finish()
        made.tree.pop("accepts", None)
        self.kit.made.append(made)
        return made

    def plain_array(self, maker: Maker) -> None:
        """An array of numbers, uuids or text, or a struct with one: few would have them by chance."""
        d = self.d
        if self.written or not d.chance(2):
            return
        name = maker.fresh()
        spec = self.counted_array()
        if d.chance(3):
            names = Names(d)
            fields = {names.fresh(): d.pick(SCALARS), names.fresh(): spec}
            spec = {"fields": fields}
            if d.chance(2):
                spec = {"array": spec, "count": "u8"}
            elif d.chance(2):
                spec |= {"present": "i8", "null": -1}
        maker.fields[name] = spec
        maker.see(name, spec)

    def counted_array(self) -> Tree:
        d = self.d
        element = d.pick((*SCALARS, {"string": "u8"}, {"bytes": "u8"}))
        return {"array": element, "count": d.pick(("u8", "varint", "i16"))}

    def entry(self, number: int) -> tuple[Made, Made | None, str | None]:
        """A layout whose length lies at a fixed place, perhaps with an array of rows at its end."""
        d = self.d
        element = None
        if self.lone in ("fixed", "open"):
            return self.lone_entry(), None, None
        plain = self.written or not d.chance(6)
        if d.chance(2):
            maker = Maker(self.kit, self.names.fresh(), may_be_open=False, plain=plain)
            if d.chance(3):
                length = maker.fresh()
                maker.fields[length] = {
                    "type": d.pick(("u16", "varint", "uvarint", "i32")),
                    "measures": "rest",
                }
                maker.see(length, maker.fields[length])
                maker.made.solid = True
                maker.may_be_open, maker.runs = True, 1
            self.plain_array(maker)
            element = maker.layout(d.number(1, 4))
            element.open = False
            if not element.solid:
                element.tree["fields"] = {"at_least_one": "u8"} | element.tree["fields"]
                element.solid = True
            self.kit.made.append(element)
        maker = Maker(self.kit, self.names.fresh(element.name if element else None), plain=plain)
        size = maker.names.keep(d.pick(("size", "x_size", "end", "length")))
        kind = {"type": self.type, "const": number}
        length = {"type": self.size_type(), "measures": "rest"}
        maker.names.taken.add(self.by)
        maker.fields = (
            {self.by: kind, size: length} if self.first else {size: length, self.by: kind}
        )
        for name, spec in list(maker.fields.items()):
            maker.see(name, spec)
        if not self.first:
            length["measures"] = {"from": self.by}
        maker.runs = 1
        maker.made.tree["endian"] = self.endian
        array = None
        if element is None or d.chance(3):
            maker.block(d.number(1, 4), element is None, True)
        if element is not None:
            if d.chance(3):  # what elements' numbers may be less than
                base = maker.fresh()
                maker.fields[base] = {"type": d.pick(("i64", "i32", "u8"))}
                maker.see(base, maker.fields[base])
            array = self.array(maker, element)
        made = maker.finish()
        if d.chance(3):
            draw_rules(d, made, self.kit)
        if d.chance(2):
            draw_fills(d, made, self.kit.made)
        made.tree["endian"] = self.endian
        made.open = False
        self.kit.made.append(made)
        return made, element, array

    def size_type(self) -> str:
        if not hasattr(self, "_size"):
            self._size = self.d.pick(("u16", "u32", "i32", "u8", "i64"))
        return self._size

    def array(self, maker: Maker, element: Made) -> str:
        """The array of rows, which ends its layout."""
        d = self.d
        kind = d.number(0, 3)
        name = maker.fresh()
        spec: Tree = {"array": element.name}
        if kind == 0:
            count = maker.fresh()
            maker.fields[count] = {"type": d.pick(("u8", "i32", "u16", "varint")), "counts": name}
        elif kind == 1:
            spec["count"] = d.pick(("u8", "i32", "compact", "varint", "u16"))
        else:
            spec["until"] = "end"
        if kind and d.chance(3):
            spec["compressed"] = maker.compressed(d.pick(maker.codecs()).path)
        if d.chance(8):
            spec["at_least"] = 1
        elif spec.get("count") in ("i32", "varint", "compact") and d.chance(3):
            spec["null"] = 0 if spec["count"] == "compact" else -1
        elif kind == 0 and maker.fields[count]["type"] in ("i32", "varint") and d.chance(2):
            spec["null"] = -2
        if element.numbers and d.chance(3):
            spec[d.pick(("refuse", "valid"))] = self.about_ends(maker, name, element)
        maker.fields[name] = spec
        maker.see(name, spec)
        return name

    def about_ends(self, maker: Maker, name: str, element: Made) -> str:
        """A condition on the first or last element of an array, which may be empty, and fields before it."""
        d = self.d
        numbers = [s.path for s in maker.seen if s.ordered and not (s.late or s.nullable)]
        other = d.pick(numbers) if numbers and d.chance(2) else str(d.pick((0, 1, -1, 100, 300)))
        end = f"{d.pick(('first', 'last'))}({name}).{d.pick(element.numbers)}"
        text = f"{end} {d.pick(('==', '!=', '<', '<=', '>', '>='))} {other}"
        if d.chance(3):
            text = f"{end} {d.pick(('==', '!='))} null {d.pick(('and', 'or'))} {text}"
        if numbers and d.chance(3):
            text = f"{text} {d.pick(('and', 'or'))} {d.pick(numbers)} < {d.pick((1, 100))}"
        return f"not ({text})" if d.chance(4) else text

    # ------------------------------------------------------------ columns

    def case(self, number: int, entry: Made, element: Made | None, array: str | None) -> None:
        """The rows of one layout."""
        d = self.d
        rows: Tree = {"of": entry.name}
        beside = []
        if array is not None:
            rows["each"] = array
            beside = list(self.beside(entry, array, rows))
        sources = [*self.sources(entry, element, array), *beside]
        if array is None and d.chance(6) and self.by in list(entry.tree["fields"])[:2]:
            rows["header_only"] = True
            sources = [
                Source(self.by, self.column_type(self.type) or "int64", part=self.by),
                Source("position", "int64"),
            ]
        own = [
            s
            for name, spec in entry.tree["fields"].items()
            for s in seen_of(name, spec, None, self.kit.enums)
            if spec is not None
        ]
        free = "header_only" not in rows and not (self.lone == "open" and not d.chance(9))
        if d.chance(5) and free:
            self.condition(rows, "when", own)
        if d.chance(6) and free:
            self.condition(rows, "full_check", own)
        values: Tree = {}
        taken: list[tuple[Column, Source]] = []
        for source in sources:
            if not d.chance(3) or self.written:
                column = self.column(source, number)
                if column is not None:
                    values[column.name] = source.text
                    taken.append((column, source))
        rows["columns"] = values
        if self.written and "header_only" not in rows:
            self.pending.append((rows, entry, element, array, taken))
        self.rows.append(rows)

    def beside(self, entry: Made, array: str, rows: Tree) -> Iterator[Source]:
        """Another array with as many elements as that of the rows, in front of it, and what rows show of it."""
        d = self.d
        fields: Tree = entry.tree["fields"]
        count = next((n for n, f in fields.items() if array in counted_arrays(f)), None)
        if count is None or self.written or "null" in fields[array] or not d.chance(3):
            return
        names = Names(d, {*fields, *entry.tree.get("derived", {})})
        other, number, text = names.fresh(), names.fresh(), names.fresh()
        held = {number: d.pick(("varint", "u8", "i32")), text: {"string": "u8"}}
        last = fields.pop(array)
        fields |= {other: {"array": {"fields": held}}, array: last}
        fields[count]["counts"] = [other, array]
        rows["each"] = [array, other]
        yield Source(f"{other}.{number}", self.column_type(held[number]) or "int64")
        yield Source(f"{other}.{text}", "string")

    def condition(self, rows: Tree, key: str, seen: list[Seen]) -> None:
        text = Conditions(self.d, seen).boolean(1)
        if text is not None:
            rows[key] = text

    def column_type(self, type_: str) -> str | None:
        """A column that has room for an integer type."""
        return number_column(self.d, type_, signed=self.written)

    def sources(self, entry: Made, element: Made | None, array: str | None) -> Iterator[Source]:
        for name, spec in entry.tree["fields"].items():
            if name != array:
                yield from self.source(name, spec, "", name)
        for name, spec in element.tree["fields"].items() if element is not None else ():
            yield from self.source(name, spec, "item.", f"item.{name}")
        yield Source("position", "int64")
        if self.d.chance(3) and entry.numbers and not self.written:
            yield Source(f"{entry.numbers[0]} + {self.d.number(0, 5)}", "int64")
            yield Source(
                f"if {entry.numbers[0]} > 1 then {entry.numbers[-1]} else null", "int64", True
            )

    def source(self, name: str, spec: Tree | str, prefix: str, part: str) -> Iterator[Source]:
        spec = {"type": spec} if isinstance(spec, str) else spec
        nullable = "when" in spec
        if self.written and {"measures", "counts", "checksum"} & set(spec):
            return  # refused by C023: few views would be written
        if "type" in spec:
            if spec["type"] == "bool":
                yield Source(prefix + name, "int8" if self.written else "bool", nullable, part)
            elif spec["type"] in ("f32", "f64") and not self.written:
                type_ = "float" if spec["type"] == "f32" else "double"
                yield Source(prefix + name, type_, nullable, part)
            elif spec["type"] == "uuid" and not self.written:
                yield Source(prefix + name, "uuid", nullable, part)
            elif spec["type"] in INTEGERS or spec["type"] in VARINTS:
                type_ = self.column_type(spec["type"])
                if type_ == "int64" and self.d.chance(4):
                    type_ = "timestamp_ms"
                if type_ is not None:
                    yield Source(prefix + name, type_, nullable, part)
        elif "bits" in spec and not nullable:
            for seen in seen_of(name, spec):
                low = 8 if seen.kind == "bool" else 0
                type_ = (
                    ("int8" if self.written else "bool")
                    if low
                    else "int64"
                    if seen.kind == "int"
                    else "int16"
                )
                yield Source(
                    f"{prefix}{seen.path}", type_, False, f"{part}.{seen.path.partition('.')[2]}"
                )
        elif ("bytes" in spec or "string" in spec) and (prefix or not self.written):
            other = "bytes" in spec or (self.d.chance(4) and not self.written)
            kind = "binary" if other else "string"
            yield Source(prefix + name, kind, nullable or "null" in spec, part)
        elif self.written and "array" in spec and prefix and not nullable:
            members = self.members(self.fields_of(spec["array"]))
            if members and "null" not in spec:  # refused by C023
                yield Source(prefix + name, "list", False, part, {"list": members})
        elif not self.written and {"array", "layout", "fields"} & set(spec):
            tree = column_of(self.d, spec, self.fields_of)
            if tree is not None:
                type_ = "list" if "list" in tree else "struct"
                yield Source(prefix + name, type_, "nullable" in tree, part, tree)

    def fields_of(self, name: object) -> Tree | None:
        """The fields of a layout."""
        if not isinstance(name, str):
            return None
        held = next((m for m in self.kit.made if m.name == name.partition("@")[0]), None)
        if held is None or (self.written and held.versions) or held.in_band:
            return None
        fields: Tree = held.tree["fields"]
        return fields

    def members(self, fields: Tree | None) -> Tree:
        """What of an element a list can show: bytes and text."""
        out: Tree = {}
        for name, spec in (fields or {}).items():
            if isinstance(spec, dict) and ("bytes" in spec or "string" in spec):
                out[name] = {"type": "binary" if "bytes" in spec else "string"}
                if "null" in spec or "when" in spec:
                    out[name]["nullable"] = True
        return out

    def column(self, source: Source, case: int) -> Column | None:
        """A column for a value: one that another case has, or a new one."""
        d = self.d
        alone = self.written and source.text == "position"  # refused by C023 beside other values
        for column in self.columns if not alone else ():
            same = column.tree.get("type") == source.type
            if same and case not in column.given and not column.alone and d.chance(2):
                if source.nullable:
                    column.tree["nullable"] = True
                column.given.add(case)
                return column
        return self.add(source, case)

    def add(self, source: Source, case: int) -> Column | None:
        d = self.d
        names = Names(d, {column.name for column in self.columns})
        inside = {name for c in self.columns for name in names_in(c.name, c.tree)}
        name = names.fresh(d.pick(self.columns).name if self.columns else None)
        tree: Tree = dict(source.tree) if source.tree is not None else {"type": source.type}
        own = set(names_in(name, tree))
        if not column_allowed(name, self.written) or name in inside or own & names.taken:
            name = names.keep("zz" + str(len(self.columns)))
        if source.nullable or (d.chance(6) and not (self.written and source.type == "list")):
            tree["nullable"] = True
        if d.chance(6):
            tree["on_request"] = True
        if d.chance(8):
            tree |= {"doc": "A column."} | ({"unit": "ms"} if d.chance(2) else {})
        column = Column(name, tree, {case}, source.text == "position")
        self.columns.append(column)
        return column

    # ------------------------------------------------------------ writing

    def defaults(self, made: Made, given: Tree, array: str | None) -> bool:
        """Give defaults to fields that no column gives a value. Whether all have one."""
        for name, spec in made.tree["fields"].items():
            full = spec if isinstance(spec, dict) else {"type": spec}
            own = {"const", "measures", "counts", "checksum", "is", "default", "absent", "when"}
            if name in given or name == array or own & set(full) or "bits" in full:
                continue
            if "array" in full or "layout" in full or "null" in full:
                continue
            if full.get("type") in (*INTEGERS, *VARINTS) and "enum" not in full:
                made.tree["fields"][name] = full | {"default": self.d.pick((0, 1))}
            else:
                return False
        return True

    def write(
        self,
        entry: Made,
        element: Made | None,
        array: str | None,
        taken: list[tuple[Column, Source]],
    ) -> Tree:
        """Every column goes back to the field that it came from."""
        d = self.d
        out: Tree = {"entry": {}}
        if element is not None:
            out["item"] = {}
        done: set[str] = set()
        for column, source in taken:
            where, name = (
                ("item", source.part[5:])
                if source.part.startswith("item.")
                else ("entry", source.part)
            )
            if not source.part or source.part in done:
                continue
            tree = (element if where == "item" else entry).tree
            field_, _, member = name.partition(".")
            spec = tree["fields"][field_]
            settled = {"const", "measures", "counts", "checksum", "is"}
            if isinstance(spec, dict) and settled & set(spec):
                continue
            done.add(source.part)
            end = "first"
            if not column.tree.get("nullable"):
                end = d.pick(("first", "first", "last", "max", "min"))
            text = (
                f"{end}({column.name})" if where == "entry" and array is not None else column.name
            )
            data = isinstance(spec, dict) and bool({"bytes", "string", "array"} & set(spec))
            if column.tree.get("nullable") and not data:
                text = f"if {text} == null then 0 else {text}"
            if member:
                out[where].setdefault(field_, {})[member] = text
            else:
                out[where][field_] = text
        if d.chance(3):
            plain = [c for c, _ in taken if c.tree.get("type") in (*WIDTHS, "bool")]
            for column in plain[:2]:
                column.tree.setdefault("default", 0)
        return out
