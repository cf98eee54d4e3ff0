"""Random layouts that `check` accepts, with every construct of the language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.laws.conditions import NUMBERS, Conditions, Seen
from tests.laws.draws import Draw
from tests.laws.names import Names
from tests.laws.open_bugs import AVOIDED
from tests.laws.world import INTEGERS, VARINTS, Tree, bits_of, reach

FIXED = tuple(INTEGERS)
ALL_INTEGERS = (*FIXED, *VARINTS)
SCALARS = ("u8", *ALL_INTEGERS, "f64", "bool", "uuid")
SHORT = ("u8", "u16", "i8", "i16", "uvarint", "varint", "compact", "i32", "u32", "i64", "u64", "varlong", "uvarlong")  # fmt: skip
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


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


@dataclass
class Kit:
    """What the layouts of a directory share."""

    d: Draw
    enums: dict[str, Tree]
    made: list[Made] = field(default_factory=list)
    releases: tuple[str, ...] = ()
    names: Names | None = None

    def since(self) -> Tree:
        d = self.d
        out: Tree = {"rel": d.pick(self.releases)} if not d.chance(3) else {}
        if d.chance(2) or not out:
            out["doc_no"] = [d.number(1, 9)]
        return out


class Maker:
    """Makes one layout. ``plain``: of what the target arrow can print, most of the time."""

    def __init__(
        self, kit: Kit, name: str, *, may_be_open: bool = True, plain: bool = False, versions: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self.kit = kit
        self.d = kit.d
        self.may_be_open = may_be_open
        self.plain = plain
        self.fields: Tree = {}
        self.names = Names(kit.d)
        self.seen: list[Seen] = []
        self.made = Made(name, {"layout": name}, versions=versions)
        self.runs = 0  # how many runs are open here: the ends of them are there in all versions
        self.ends: set[str] = set()

    # ------------------------------------------------------------ the whole

    def layout(self, parts: int) -> Made:
        d, made = self.d, self.made
        self.head()
        self.block(parts, self.may_be_open, True)
        return self.finish()

    def head(self) -> None:
        """The keys of a layout, and the field that holds its version."""
        d, tree = self.d, self.made.tree
        if d.chance(4):
            tree["doc"] = d.pick(("A thing.", 'Said: "it" \\ and {0} %s', "Ends with a quote'"))
        if d.chance(4):
            tree["endian"] = d.pick(("little", "big"))
        if d.chance(8) and self.kit.releases and not self.kit.made:
            tree["draft"] = {"doc_no": d.number(1, 99)}
        elif d.chance(8) and self.kit.releases:
            tree["since"] = self.kit.since()
        if self.made.versions is not None:
            low, high = self.made.versions
            tree["versions"] = str(low) if low == high else f"{low}-{high}"
            if d.chance(2):
                name = self.fresh()
                tree["version_is"] = name
                self.made.in_band = True
                self.fields[name] = {"type": d.pick(("u8", "i16", "i64")), "is": "version"}
                self.see(name, self.fields[name])
            if d.chance(4) and self.kit.releases:
                tree["version_notes"] = {str(low): {"since": {"rel": self.kit.releases[0]}, "doc": "Old."}}
                tree["version_notes"][str(low)]["until"] = {"rel": self.kit.releases[-1]}

    def finish(self) -> Made:
        made = self.made
        made.tree["fields"] = self.fields
        if self.d.chance(5):
            self.freedoms()
        made.solid = made.solid or any(_solid(spec) for spec in self.fields.values())
        made.numbers = tuple(s.path for s in self.seen if s.kind == "int" and not s.nullable and s.versions is None and "." not in s.path)  # fmt: skip
        made.framed = _framed(self.fields)
        made.sums = any("checksum" in spec for spec in self.fields.values() if isinstance(spec, dict))  # fmt: skip
        return made

    def fresh(self) -> str:
        near = self.d.pick(list(self.fields)) if self.fields else None
        return self.names.fresh(near)

    # ------------------------------------------------------------ blocks

    def block(self, parts: int, known: bool, last: bool) -> None:
        """Some fields. ``known``: something says where the block ends; ``last``: the layout ends with it."""
        d = self.d
        nested = any(isinstance(s, dict) and "nesting" in s for s in self.fields.values())
        tail = known and d.chance(3) and not (nested and self.runs == 0)
        number = d.number(1, parts)
        for i in range(number):
            at_end = last and i == number - 1 and not tail
            kind = d.number(0, 11)
            if kind == 9 and parts > 1:
                self.measured(parts // 2, at_end)
            elif kind == 10:
                self.counted()
            elif kind == 11 and parts > 1:
                self.checked(parts // 2, at_end)
            else:
                self.one()
        if tail:
            self.tail(last)

    def measured(self, parts: int, at_end: bool) -> None:
        """A length, and the run that it measures."""
        d = self.d
        name = self.fresh()
        types = ("u16", "u8", "i32", "u32", "i8", "i16", "i64", "u64", "uvarint", "varint", "varlong", "uvarlong")
        spec: Tree = {"type": d.pick(types[:4] if self.plain else types)}
        self.fields[name] = spec
        if not self.plain and d.chance(12):
            self.condition(spec)
        if d.chance(5):
            self.one(fixed=True)
            gap = True
        else:
            gap = False
        before = len(self.fields)
        self.runs += 1
        open_end = "when" not in spec
        self.block(parts, open_end, at_end)
        self.runs -= 1
        inside = list(self.fields)[before:]
        spec["measures"] = self.run(name, inside, at_end, gap)
        self.see(name, spec)

    def run(self, own: str, inside: list[str], at_end: bool, gap: bool) -> Any:
        """A run of fields, said in one of the ways that mean the same."""
        d = self.d
        self.ends |= {inside[0], inside[-1]}
        if at_end and not gap and d.chance(2):
            return "rest"
        run = {"from": inside[0]}
        if not at_end or d.chance(2):
            run["to"] = inside[-1]
        return run

    def counted(self, element: str | None = None) -> None:
        """A count, and the array that it counts."""
        d = self.d
        count, array = self.fresh(), self.fresh()
        self.fields[count] = {"type": d.pick(("u8", "i16", "u32", "varint", "uvarlong", *ALL_INTEGERS)), "counts": array}  # fmt: skip
        if self.plain and self.fields[count]["type"] in ("u64", "uvarlong"):
            self.fields[count]["type"] = "u16"
        spec: Tree = {"array": element or self.element()}
        if d.chance(6):
            self.condition(spec)
            if "when" in spec and d.chance(2):
                self.fields[count]["when"] = spec["when"]
        self.see(count, self.fields[count])
        if d.chance(3):
            self.one()
        if d.chance(8) and self.may_ask(spec):
            spec["at_least"] = 1
        self.fields[array] = spec
        self.see(array, spec)

    def checked(self, parts: int, at_end: bool) -> None:
        """A checksum, before or behind the run that it covers."""
        d = self.d
        name = self.fresh()
        spec: Tree = {"type": "u32", "checksum": d.pick(("crc32c", "crc32"))}
        self.runs += 1
        first = d.chance(2) and not self.plain
        if not first:
            self.fields[name] = spec
        before = len(self.fields)
        self.block(parts, False, at_end and not first)
        inside = list(self.fields)[before:]
        if first:
            self.fields[name] = spec
        self.runs -= 1
        spec["covers"] = self.run(name, inside, at_end and not first, first)
        if not first and spec["covers"] == "rest" and list(self.fields)[before - 1] != name:
            spec["covers"] = {"from": inside[0]}
        if first:
            spec["covers"]["to"] = inside[-1]
        self.see(name, spec)

    def tail(self, last: bool) -> None:
        """What takes all that is left, and perhaps fields of fixed size behind it."""
        d = self.d
        kinds = ["bytes", "until", "string", "compressed", "open"]
        kind = d.pick(kinds[:4] if self.plain else kinds)
        name = self.fresh()
        if last and self.runs == 0:
            self.made.open = True
        spec: Tree
        opens = [m for m in self.kit.made if m.open and self.may_hold(m)]
        if kind == "open" and opens:
            spec = {"layout": d.pick(opens).name}
        elif kind in ("until", "compressed"):
            by = [s for s in self.seen if s.type == "squeeze" and not s.nullable and s.versions is None]
            spec = {"array": self.element()}
            if kind == "compressed" and by:
                spec["compressed"] = self.compressed(d.pick(by).path)
                if d.chance(2):
                    spec["count"] = d.pick(SHORT)
                else:
                    spec["until"] = "end"
            else:
                spec["until"] = "end"
        else:
            spec = {kind if kind != "open" else "bytes": "rest"}
        self.fields[name] = spec
        self.see(name, spec)
        behind = d.chance(4) and "compressed" not in spec
        if behind and ("bytes" in spec or "string" in spec or "fixed_behind_array" not in AVOIDED):
            self.one(fixed=True)

    def compressed(self, by: str) -> Tree:
        d = self.d
        out: Tree = {"by": by, "limit": d.pick((1 << 16, 1 << 20, 100, 1 << 40))}
        if d.chance(3):
            out["refuses"] = [d.pick(CODECS[1:])]
        if d.chance(3):
            out["variants"] = {"lz4": {"write": "legacy-header-checksum", "read": "unchecked-header"}}  # fmt: skip
            if self.made.versions is not None and d.chance(2):
                out["variants"]["lz4"]["versions"] = str(self.made.versions[0])
        return out

    # ------------------------------------------------------------ single fields

    def one(self, fixed: bool = False) -> None:
        """One field of any type; a fixed one has a size that is known."""
        d = self.d
        name = self.fresh()
        kind = d.number(0, 5 if fixed else 13)
        if kind <= 3:
            spec = self.scalar(fixed)
        elif kind == 4:
            spec = self.bits()
        elif kind == 5:
            spec = {d.pick(("bytes", "string")): d.number(1, 4)}
        elif kind <= 8:
            spec = {d.pick(("string", "bytes")): d.pick(SHORT)}
            self.null(spec)
        elif kind <= 10:
            spec = {"array": self.element()}
            spec |= {"count": d.pick(SHORT)} if self.plain or d.chance(2) else {"length": d.pick([s for s in SHORT if s != "compact"])}  # fmt: skip
            if d.chance(6) and self.may_ask(spec):
                spec["at_least"] = d.number(0, 2)
        elif kind == 11:
            holds = [m for m in self.kit.made if not m.open and self.may_hold(m)]
            spec = {"layout": self.named(d.pick(holds))} if holds and not self.plain else {"bytes": "u8"}
        elif kind == 12 and not self.plain and not self.made.open:
            spec = {"array": self.made.name, "count": d.pick(("u8", "compact")), "nesting": d.number(1, 3)}
            if self.made.versions is not None and not self.made.in_band:
                spec = {"bytes": "u8"}
        else:
            spec = self.scalar(fixed)
        self.documents(spec)
        if not fixed and d.chance(4):
            self.condition(spec)
        if self.made.versions is not None and self.runs == 0 and d.chance(3) and not fixed:
            low, high = self.made.versions
            cut = d.number(low, high)
            spec["versions"] = d.pick((f"{cut}+", f"{low}-{cut}", str(cut)))
        self.default(spec)
        self.fields[name] = spec if set(spec) != {"type"} or d.chance(2) else spec["type"]
        if not fixed:
            self.rules(name, spec)
        self.see(name, spec)

    def scalar(self, fixed: bool) -> Tree:
        d = self.d
        types = [t for t in SCALARS if t not in VARINTS] if fixed else list(SCALARS)
        spec: Tree = {"type": d.pick(types)}
        if spec["type"] in ALL_INTEGERS and d.chance(3):
            enum = d.pick(list(self.kit.enums))
            low, high = reach(spec["type"])
            values = _numbers(self.kit.enums[enum])
            fitting = [name for name, number in values.items() if low <= number <= high]
            if fitting:
                spec["enum"] = enum
                if len(fitting) < len(values) or d.chance(3):
                    spec["only"] = d.some(fitting, 1)
        return spec

    def bits(self) -> Tree:
        d = self.d
        base = d.pick(FIXED)
        width = 8 * INTEGERS[base][0]
        names = Names(d)
        members: Tree = {}
        at = 0
        versioned = False
        while at < width and len(members) < 5 and not (at and d.chance(4)) and not versioned:
            size = min(d.pick((1, 1, 2, 3, 5)), width - at)
            member: Tree = {"at": str(at) if size == 1 else f"{at}..{at + size - 1}"}
            member["at"] = int(member["at"]) if size == 1 else member["at"]
            if size > 1 and d.chance(2):
                enum = "squeeze" if size >= 3 and d.chance(2) else d.pick(list(self.kit.enums))
                values = _numbers(self.kit.enums[enum])
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
                members[names.fresh()] = {"at": f"{at}..{width - 1}" if width - at > 1 else at}
            else:
                members[names.fresh()] = {"reserved": "keep"}
        return {"bits": base, "members": members}

    def null(self, spec: Tree) -> None:
        """Perhaps a length that means null."""
        d = self.d
        length = spec.get("string", spec.get("bytes"))
        if length == "compact" and d.chance(2):
            spec["null"] = 0
        elif length != "compact" and d.chance(3):
            signed = reach(length)[0] < 0
            spec["null"] = d.pick((-1, -1, -2) if signed else (255, 0, 3))
            if not signed and "null_by_a_length" in AVOIDED:
                del spec["null"]

    def element(self) -> str:
        """What an array holds."""
        d = self.d
        solid = [m for m in self.kit.made if not m.open and m.solid and self.may_hold(m)]
        if solid and d.chance(2):
            return self.named(d.pick(solid))
        return d.pick([s for s in SCALARS if s not in VARINTS] if self.plain else SCALARS)

    def may_ask(self, spec: Tree) -> bool:
        """Whether an array can be asked for a fewest number of elements."""
        numbers = spec["array"] in SCALARS and self.plain
        return not (numbers and "at_least_of_numbers_by_numpy" in AVOIDED)

    def may_hold(self, m: Made) -> bool:
        mine = self.made.versions
        if m.versions is None or m.in_band or m.versions[0] == m.versions[1]:
            return True
        return mine is not None and m.versions[0] <= mine[0] and mine[1] <= m.versions[1]

    def named(self, m: Made) -> str:
        """The layout, perhaps in one version."""
        if m.versions is not None and self.d.chance(4):
            return f"{m.name}@{self.d.number(*m.versions)}"
        return m.name

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
        if "array" in spec:
            if d.chance(5):
                spec["default"] = []
            return
        if spec.get("type") not in ALL_INTEGERS:
            key = next((k for k in ("bytes", "string") if k in spec), None)
            if key and "null" in spec and d.chance(5):
                spec["default"] = "null"
            return
        low, high = reach(spec["type"])
        kind = d.number(0, 9)
        if "enum" in spec:
            words = _numbers(self.kit.enums[spec["enum"]])
            allowed = spec.get("only", list(words))
            if kind == 7:
                spec["default"] = d.pick(allowed)
            elif kind == 8:
                spec["const"] = words[d.pick(allowed)]
        elif kind == 6:
            spec["none"] = d.pick([n for n in (-1, 0, *NUMBERS) if low <= n <= high])
        elif kind == 7:
            spec["const"] = d.pick([n for n in (7, *NUMBERS) if low <= n <= high])
        elif kind == 8:
            spec["default"] = d.pick([n for n in NUMBERS if low <= n <= high])
        elif kind == 9:
            there = self.expressions(spec)
            ints = [s.path for s in there.seen if s.kind == "int" and not s.nullable]
            condition = there.boolean(0)
            if ints and condition:
                spec["default"] = f"if {condition} then {d.pick(ints)} else {d.number(0, 9)}"

    def documents(self, spec: Tree) -> None:
        """Keys that are about documents only."""
        d = self.d
        if not d.chance(6):
            return
        kind = d.number(0, 5)
        if kind == 0:
            spec["doc"] = d.pick(("Something.", "A | B, <b> & `c`", "Ends in \\"))
        elif kind == 1:
            spec["unit"] = d.pick(("ms", "bytes"))
        elif kind == 2:
            spec["spelled"] = d.pick(("someName", "X-y", "class"))
        elif kind == 3:
            spec["hidden"] = True
        elif kind == 4:
            if self.kit.releases and d.chance(2):
                spec["since"] = {"doc_no": [4, 5]}
            spec["misprint"] = {"as": d.pick(("missing", "int16")), "doc": "Wrong."}
            if self.kit.releases:
                spec["misprint"]["until"] = self.kit.releases[-1]
        elif self.kit.releases:
            spec["formerly"] = {"name": "was", "until": self.kit.releases[-1]}

    def about(self, member: Tree) -> None:
        """Keys of a bit that are about documents or versions."""
        d = self.d
        kind = d.number(0, 11)
        if kind == 7:
            member["doc"] = "A bit."
        elif kind == 8:
            member["spelled"] = "aBit"
        elif kind == 9:
            member["misprint"] = {"as": "missing"} | ({"versions": str(self.made.versions[0])} if self.made.versions else {})  # fmt: skip
        elif kind == 10 and self.kit.releases:
            member["since"] = {"doc_no": 2}
        elif kind == 11 and self.made.versions and self.made.versions[0] < self.made.versions[1] and "versioned_bits":
            member["versions"] = f"{self.made.versions[1]}+"

    def see(self, name: str, spec: Any) -> None:
        self.seen += seen_of(name, spec, {m.name: m.numbers for m in self.kit.made}, self.kit.enums)

    def freedoms(self) -> None:
        """What lenient readers may take."""
        d, tree = self.d, self.made.tree
        own: list[str] = ["trailing_bytes"] if d.chance(2) else []
        for spec in self.fields.values():
            if not isinstance(spec, dict):
                spec = {"type": spec}
            about: list[str] = []
            held: Made | None = None
            types = [spec.get(k) for k in ("type", "bytes", "string", "count", "length", "array")]
            if any(t in VARINTS or t == "compact" for t in types):
                about.append("overlong_varints")
            if "string" in spec:
                about.append("invalid_utf8")
            if spec.get("null", 0) < 0:
                about.append("negative_null")
            if "array" in spec:
                about.append("bytes_after_none")
                held = next((m for m in self.kit.made if m.name == spec["array"].partition("@")[0]), None)  # fmt: skip
                own_length = held is not None and held.framed
                if spec.get("until") == "end" and own_length:
                    about.append("truncated_tail")
                if held is not None and held.in_band:
                    about.append("mixed_versions")
                if held is not None and held.sums:
                    about.append("unchecked_elements")
            if "measures" in spec or "layout" in spec or ("array" in spec and held is not None):
                about.append("trailing_bytes")
            if about and d.chance(2):
                if len(spec) > 1 and d.chance(2):
                    spec["accepts"] = d.some(about, 1)
                else:
                    own += d.some(about, 1)
        if own:
            tree["accepts"] = list(dict.fromkeys(own))


def _numbers(enum: Tree) -> dict[str, int]:
    return {name: v["value"] if isinstance(v, dict) else v for name, v in enum["values"].items()}


def _framed(fields: Tree) -> bool:
    """Whether the first field measures all the others."""
    first = next(iter(fields.values()))
    return isinstance(first, dict) and first.get("measures") == "rest" and first["type"] in INTEGERS and "when" not in first


def _solid(spec: Any) -> bool:
    """Whether a field takes a byte or more whatever it holds."""
    if not isinstance(spec, dict):
        return True
    if "when" in spec or "versions" in spec or "layout" in spec:
        return False
    if "array" in spec:
        return bool({"count", "length"} & set(spec))
    return spec.get("bytes", spec.get("string")) != "rest"


def seen_of(name: str, spec: Any, numbers: dict[str, tuple[str, ...]] | None = None, enums: dict[str, Tree] | None = None) -> list[Seen]:  # fmt: skip
    """What a field lets expressions name."""
    spec = spec if isinstance(spec, dict) else {"type": spec}
    versions, nullable = spec.get("versions"), "when" in spec
    late = "measures" in spec or "checksum" in spec
    if "const" in spec and "conditions_on_constants" in AVOIDED:
        return []
    if "bits" in spec:
        out: list[Seen] = []
        if nullable and "bits_that_are_not_there" in AVOIDED:
            return out
        for member, bit in spec["members"].items():
            path = f"{name}.{member}"
            if "versions" in bit or ("reserved" in bit and "reserved_bits_by_name" in AVOIDED):
                continue
            if "enum" in bit:
                words = tuple(bit.get("only") or _numbers((enums or {}).get(bit["enum"], {"values": {}})))  # fmt: skip
                out.append(Seen(path, "enum", words, nullable, versions, type=bit["enum"]))
            else:
                low, high = bits_of(bit["at"]) if "at" in bit else (0, 1)
                kind = "bool" if low == high and "at" in bit else "int"
                out.append(Seen(path, kind, (), nullable, versions))
        return out
    if "type" in spec:
        if "enum" in spec:
            words = tuple(spec.get("only") or _numbers((enums or {}).get(spec["enum"], {"values": {}})))  # fmt: skip
            return [Seen(name, "enum", words, nullable, versions, type=spec["enum"], late=late)]
        kind = {"bool": "bool", "f64": "float", "uuid": "uuid"}.get(spec["type"], "int")
        return [Seen(name, kind, (), nullable, versions, type=spec["type"], late=late)]
    if "array" in spec:
        held = spec["array"].partition("@")[0]
        element = (numbers or {}).get(held, ("",) if held in ALL_INTEGERS else ())
        return [Seen(name, "array", (), nullable, versions, element)]
    if "layout" in spec:
        return []
    kind = "bytes" if "bytes" in spec else "text"
    return [Seen(name, kind, (), nullable or "null" in spec, versions)]
