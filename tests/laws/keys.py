"""Types of single fields, and the keys that stand beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.laws.conditions import NUMBERS, Conditions, Seen
from tests.laws.draws import Draw
from tests.laws.names import Names
from tests.laws.seen import (
    ALL_INTEGERS,
    FIXED,
    SCALARS,
    UNSIGNED_VARINTS,
    VLQS,
    numbers_of,
    seen_of,
)
from tests.laws.world import (
    INTEGERS,
    RANGED,
    VARINTS,
    Hexed,
    Quoted,
    Tree,
    bit_width,
    each,
    reach,
    span,
)


@dataclass
class Made:
    """A layout that others can hold. ``open``: the bytes around it say where it ends. ``solid``: it takes a byte or more."""

    name: str
    tree: Tree
    open: bool = False
    solid: bool = False
    versions: tuple[int, int] | None = None
    in_band: bool = False
    numbers: tuple[str, ...] = ()
    sums: bool = False
    framed: bool = False
    plain: bool = False


@dataclass
class Several:
    """A choice that layouts can hold. ``told``: something has to say the versions of cases, ``pinned``: a case names its own,
    ``nested``: a case is a choice. ``head`` is a number before the field that decides."""

    name: str
    numbers: list[int]
    cases: list[Made]
    by: str | None = None
    enum: str | None = None
    told: bool = False
    pinned: bool = False
    nested: bool = False
    head: str | None = None


@dataclass
class Kit:
    """What the layouts of a directory share."""

    d: Draw
    enums: dict[str, Tree]
    made: list[Made] = field(default_factory=list)
    several: list[Several] = field(default_factory=list)
    releases: tuple[str, ...] = ()
    names: Names | None = None

    def since(self) -> Tree:
        d = self.d
        out: Tree = {"rel": d.pick(self.releases)} if not d.chance(3) else {}
        if d.chance(2) or not out:
            out["doc_no"] = [d.number(1, 9)]
        return out


class Keys:
    """Draws what stands in a field of the layout that is made. ``plain``: what the target arrow can print, most of the time."""

    kit: Kit
    d: Draw
    plain: bool
    made: Made
    fields: Tree
    seen: list[Seen]

    # ------------------------------------------------------------ types

    def scalar(self, fixed: bool) -> Tree:
        d = self.d
        types = [t for t in SCALARS if t not in VARINTS] if fixed else list(SCALARS)
        if self.plain and not d.chance(8):
            types = [
                t for t in types if t not in ("u64", "uvarlong", "f32", "f64", "i24", "u24", *VLQS)
            ]
        spec: Tree = {"type": d.pick(types)}
        if spec["type"] in ALL_INTEGERS and d.chance(3):
            enum = d.pick(list(self.kit.enums))
            low, high = reach(spec["type"])
            values = numbers_of(self.kit.enums[enum])
            fitting = [name for name, number in values.items() if low <= number <= high]
            if fitting:
                spec["enum"] = enum
                if len(fitting) < len(values) or d.chance(3):
                    spec["only"] = d.some(fitting, 1)
        return spec

    def bits(self, fixed: bool = False) -> Tree:
        """Bits of an integer; of one of variable length too, unless ``fixed``."""
        d = self.d
        base = d.pick([t for t in FIXED if not (self.plain and t in ("i24", "u24"))])
        if not fixed and d.chance(5):
            base = d.pick(("uvarint",) if self.plain else UNSIGNED_VARINTS)
        width = bit_width(base)
        names = Names(d)
        members: Tree = {}
        at = 0
        versioned = False
        while at < width and len(members) < 5 and not (at and d.chance(4)) and not versioned:
            size = min(d.pick((1, 1, 2, 3, 5)), width - at)
            member: Tree = {"at": str(at) if size == 1 else f"{at}-{at + size - 1}"}
            member["at"] = int(member["at"]) if size == 1 else member["at"]
            if size > 1 and d.chance(2):
                enum = "squeeze" if size >= 3 and d.chance(2) else d.pick(list(self.kit.enums))
                values = numbers_of(self.kit.enums[enum])
                fitting = [name for name, number in values.items() if 0 <= number < 1 << size]
                if fitting:
                    member["enum"] = enum
                    if len(fitting) < len(values):
                        member["only"] = fitting
            if "enum" not in member and size > 1 and d.chance(4):
                member["default"] = d.number(0, (1 << size) - 1)
            self.about(member)
            versioned = "versions" in member
            members[names.fresh()] = member
            at += size
        if at < width:
            if d.chance(4) and not versioned:
                members[names.fresh()] = {"at": f"{at}-{width - 1}" if width - at > 1 else at}
            else:
                members[names.fresh()] = {"reserved": "keep"}
        return {"bits": base, "members": members}

    def order(self, spec: Tree) -> None:
        """Perhaps an order of bytes of the field's own."""
        inner = spec.get("array")
        held = inner if isinstance(inner, dict) else {"": inner}
        types = [spec.get(k) for k in ("type", "bits", "bytes", "string", "count", "length")]
        types += [held.get(k) for k in ("", "bytes", "string")]
        wide = ("f32", "f64", *(name for name, (size, _) in INTEGERS.items() if size > 1))
        if any(t in wide for t in types if isinstance(t, str)) and self.d.chance(6):
            spec["endian"] = self.d.pick(("little", "big"))

    def null(self, spec: Tree, length: str) -> None:
        """Perhaps a length or a count of a type that means null."""
        d = self.d
        if length == "compact" and d.chance(2):
            spec["null"] = 0
        elif length != "compact" and d.chance(3):
            signed = reach(length)[0] < 0
            spec["null"] = -1 if self.plain else d.pick((-1, -2) if signed else (255, 0, 3))
            if self.plain and not signed:
                del spec["null"]

    def by_version(self, spec: Tree, always: bool = False) -> None:
        """Perhaps another length, count or number from a version on; ``always`` where there can be one."""
        if isinstance(spec.get("array"), dict):
            element = spec["array"] | {k: v for k, v in spec.items() if k == "versions"}
            self.by_version(element, "null" in element)  # there are few of them
            spec["array"] = {k: v for k, v in element.items() if k != "versions"}
        d, mine = self.d, self.made.versions
        key = next((key for key in RANGED if isinstance(spec.get(key), str)), None)
        settled = {"enum", "const", "default", "absent", "nesting"} & set(spec)
        if key is None or mine is None or settled or not (always or d.chance(2)):
            return
        first, last = span(spec["versions"]) if "versions" in spec else mine
        low, high = max(first, mine[0]), min(mine[1] if last is None else last, mine[1])
        if spec[key] in ("rest", "bool", "f64", "uuid") or low >= high:
            return
        cut = d.number(low, high - 1)
        sides = (str(low) if low == cut else f"{low}-{cut}", f"{cut + 1}+")
        types = ("i64", "u8", "varint") if key in ("type", "present") else ("i16", "u8", "uvarint")
        other = d.pick((*types, "compact") if key in ("string", "bytes", "count") else types)
        if key == "count" and not {"null", "at_least"} & set(spec) and d.chance(3):
            other = d.number(1, 3)
        spec[key] = {sides[0]: spec[key], sides[1]: other}
        if "null" in spec:
            null = 0 if other == "compact" else -1 if reach(other)[0] < 0 else 200
            spec["null"] = {sides[0]: spec["null"], sides[1]: null}
            if key != "present" and d.chance(3):
                del spec["null"][d.pick(sides)]

    # ------------------------------------------------------------ keys beside the type

    def condition(self, spec: Tree) -> None:
        """Perhaps a ``when``."""
        when = self.expressions(spec).boolean()
        if when is not None:
            spec["when"] = when

    def expressions(self, spec: Tree) -> Conditions:
        there = [s for s in self.seen if s.versions is None or s.versions == spec.get("versions")]
        return Conditions(self.d, there, self.made.versions if self.made.in_band else None)

    def rules(self, name: str, spec: Tree) -> None:
        """Perhaps ``valid`` or ``refuse``, about the field itself and those before it."""
        d = self.d
        if not d.chance(6):
            return
        own = seen_of(name, spec)
        more = Conditions(d, [s for s in [*self.expressions(spec).seen, *own] if not s.late])
        rule = more.boolean()
        if rule is not None:
            spec["valid" if d.chance(2) else "refuse"] = rule

    def default(self, spec: Tree) -> None:
        """Perhaps a constant, a default or a number for nothing."""
        d = self.d
        if {"array", "layout", "fields", "choice"} & set(spec):
            if "null" in spec and d.chance(4):
                spec["default"] = "null"
            elif "array" in spec and d.chance(5):
                spec["default"] = []
            return
        if spec.get("type") not in ALL_INTEGERS:
            key = next((k for k in ("bytes", "string") if k in spec), None)
            if key and "null" in spec and d.chance(5):
                spec["default"] = None
            elif key and d.chance(4):
                spec[d.pick(("default", "const"))] = self.data(key, spec)
            elif spec.get("type") == "bool" and d.chance(2):
                spec[d.pick(("default", "const"))] = d.pick((False, True))
            return
        low, high = reach(spec["type"])
        kind = d.number(0, 9)
        if "enum" in spec:
            words = numbers_of(self.kit.enums[spec["enum"]])
            allowed = spec.get("only", list(words))
            if kind == 7:
                spec["default"] = d.pick(allowed)
            elif kind == 8:
                word = d.pick(allowed)
                spec["const"] = word if d.chance(2) else words[word]
        elif kind == 6:
            spec["absent"] = d.pick([n for n in (-1, 0, *NUMBERS) if low <= n <= high])
        elif kind == 7:
            spec["const"] = d.pick([n for n in (7, Hexed(10), *NUMBERS) if low <= n <= high])
        elif kind == 8:
            spec["default"] = d.pick([n for n in (Hexed(31), *NUMBERS) if low <= n <= high])
        elif kind == 9:
            there = self.expressions(spec)
            ints = [s.path for s in there.seen if s.kind == "int" and not s.nullable]
            condition = there.boolean(0)
            if ints and condition:
                spec["default"] = f"if {condition} then {d.pick(ints)} else {d.number(0, 9)}"

    def data(self, key: str, spec: Tree) -> Any:
        """Bytes or text that fit a field."""
        d = self.d
        text = d.pick(("x", "", "Obj\x01", "null", 'a "b" \\ {0}', "\u00e9\u20ac"))
        size = spec[key] if isinstance(spec[key], int) else None
        if "padded" in spec or spec[key] == "zero_terminated":
            return Quoted("~}x"[: size or 3])
        if key == "string":
            return Quoted(text if size is None else "{~}x"[:size])
        if size is not None or d.chance(2):
            return {
                "hex": Quoted(d.pick(("00ff8041", "4f626a01"))[: 8 if size is None else 2 * size])
            }
        return Quoted(text if text.isascii() else "ascii")

    def documents(self, spec: Tree) -> None:
        """Keys that are about documents only."""
        d = self.d
        if not d.chance(6):
            return
        kind = d.number(0, 6)
        if kind == 6:
            spec["sensitive"] = True
        elif kind == 0:
            spec["doc"] = d.pick(("Something.", "A | B, <b> & `c`", "Ends in \\"))
        elif kind == 1:
            spec["unit"] = d.pick(("ms", "bytes"))
        elif kind == 2:
            spec["spelled"] = d.pick(("someName", "X-y", "class"))
        elif kind == 3:
            spec["documentation"] = {"hidden": True}
        elif kind == 4:
            if self.kit.releases and d.chance(2):
                spec["since"] = {"doc_no": [4, 5]}
            misprint = {"as": d.pick(("missing", "int16")), "doc": "Wrong."}
            if self.kit.releases:
                misprint["until"] = self.kit.releases[-1]
            spec["documentation"] = {"misprint": misprint}
        elif self.kit.releases:
            formerly = {"name": "was", "until": self.kit.releases[-1]}
            spec["documentation"] = {"formerly": formerly}

    def about(self, member: Tree) -> None:
        """Keys of a bit that are about documents or versions."""
        d = self.d
        kind = d.number(0, 11)
        several = self.made.versions is not None and self.made.versions[0] < self.made.versions[1]
        if several and kind < 3 and not self.plain:
            kind = 11
        if kind == 7:
            member["doc"] = "A bit."
        elif kind == 8:
            member["spelled"] = "aBit"
        elif kind == 9:
            versions = {"versions": str(self.made.versions[0])} if self.made.versions else {}
            member["documentation"] = {"misprint": {"as": "missing"} | versions}
        elif kind == 10 and self.kit.releases:
            member["since"] = {"doc_no": 2}
        elif (
            kind == 11
            and self.made.versions
            and self.made.versions[0] < self.made.versions[1]
            and "versioned_bits"
        ):
            member["versions"] = f"{self.made.versions[1]}+"

    def see(self, name: str, spec: Any) -> None:
        self.seen += seen_of(name, spec, {m.name: m.numbers for m in self.kit.made}, self.kit.enums)

    def freedoms(self) -> None:
        """What lenient readers may take, of the layout or of a field."""
        d, tree = self.d, self.made.tree
        own: list[str] = ["trailing_bytes"] if d.chance(2) else []
        for spec in self.fields.values():
            about, special = self.about_freedoms(spec)
            taken = [*d.some(about), *(special if d.chance(2) else ())]
            if taken and isinstance(spec, dict) and d.chance(2):
                spec["accepts"] = taken
            else:
                own += taken
        if own:
            tree["accepts"] = list(dict.fromkeys(own))

    def about_freedoms(self, spec: Any) -> tuple[list[str], list[str]]:
        """The freedoms that a field can have: those of many fields, and those of few."""
        spec = spec if isinstance(spec, dict) else {"type": spec}
        about: list[str] = []
        special: list[str] = []
        element = spec.get("array")
        inner = element if isinstance(element, dict) else spec
        parts = (spec, inner) if inner is not spec else (spec,)
        types = [t for part in parts for key in (*RANGED, "array") for t in each(part.get(key))]
        if any(isinstance(t, str) and (t in VARINTS or t == "compact") for t in types):
            about.append("overlong_varints")
        if "string" in inner:
            about.append("invalid_utf8")
        if any(null < 0 for part in parts for null in each(part.get("null", 0))):
            special.append("negative_null")
        if "present" in spec:
            special.append("any_present")
        if "measures" in spec or "layout" in spec or "fields" in spec:
            about.append("trailing_bytes")
        if "array" in spec:
            if not {"length", "until"} & set(spec) and not isinstance(spec.get("count"), int):
                about.append("bytes_after_none")
            name = "" if isinstance(element, dict) else spec["array"].partition("@")[0]
            held = next((m for m in self.kit.made if m.name == name), None)
            if held is not None:
                if held.framed and spec.get("until") == "end" and "compressed" not in spec:
                    special.append("truncated_tail")
                if held.in_band:
                    special.append("mixed_versions")
                if held.sums:
                    special.append("unchecked_elements")
        return about, special
