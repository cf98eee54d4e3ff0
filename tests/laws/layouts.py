"""Random layouts that `check` accepts, with every construct of the language."""

from __future__ import annotations

from typing import Any

from tests.laws.chosen_fields import ChosenFields
from tests.laws.conditions import Seen
from tests.laws.keys import Kit, Made
from tests.laws.names import Names
from tests.laws.seen import ALL_INTEGERS, SCALARS, VLQS, framed, solid
from tests.laws.world import CHECK_WIDTHS, INTEGERS, VARINTS, Hexed, Tree, reach

READ_BY_KERNELS = tuple(name for name, width in CHECK_WIDTHS.items() if width != 24)
"""The checksums whose numbers kernels load."""

SHORT = (
    "u8",
    "u16",
    "i8",
    "i16",
    "uvarint",
    "varint",
    "compact",
    "i32",
    "u32",
    "i64",
    "u64",
    "varlong",
    "uvarlong",
    "u24",
    "i24",
    "vlq32",
    "vlq64",
    "bijective_vlq32",
    "bijective_vlq64",
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Maker(ChosenFields):
    """Makes one layout. ``plain``: of what the target arrow can print, most of the time."""

    def __init__(
        self,
        kit: Kit,
        name: str,
        *,
        may_be_open: bool = True,
        plain: bool = False,
        versions: tuple[int, int] | None = None,
    ) -> None:
        self.kit = kit
        self.d = kit.d
        self.may_be_open = may_be_open
        self.plain = plain
        self.fields: Tree = {}
        self.names = Names(kit.d)
        self.seen: list[Seen] = []
        self.made = Made(name, {"layout": name}, versions=versions, plain=plain)
        self.may_pad = True  # no length before has a size that varies
        self.runs = 0  # how many runs are open here: the ends of them are there in all versions
        self.ends: set[str] = set()

    # ------------------------------------------------------------ the whole

    def layout(self, parts: int) -> Made:
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
                self.made.in_band = True
                self.fields[name] = {"type": d.pick(("u8", "i16", "i64")), "is": "version"}
                self.see(name, self.fields[name])
            if d.chance(4) and self.kit.releases:
                tree["version_notes"] = {
                    str(low): {"since": {"rel": self.kit.releases[0]}, "doc": "Old."}
                }
                tree["version_notes"][str(low)]["until"] = {"rel": self.kit.releases[-1]}

    def finish(self) -> Made:
        made = self.made
        made.tree["fields"] = self.fields
        special = any(self.about_freedoms(spec)[1] for spec in self.fields.values())
        if self.d.chance(5) or (special and self.d.chance(2)):
            self.freedoms()
        made.solid = made.solid or any(solid(spec) for spec in self.fields.values())
        made.numbers = tuple(
            s.path
            for s in self.seen
            if s.kind == "int" and not s.nullable and s.versions is None
            if "." not in s.path and not s.late
        )
        made.framed = framed(self.fields)
        made.sums = any(
            isinstance(spec, dict) and "checksum" in spec for spec in self.fields.values()
        )
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
            kind = d.number(0, 11 if self.plain else 12)
            if kind == 9 and parts > 1:
                self.measured(parts // 2, at_end)
            elif kind == 10:
                self.counted()
            elif kind == 11 and parts > 1:
                self.checked(parts // 2, at_end)
            elif kind == 12 and parts > 1:
                self.sections()
            else:
                self.one()
        if tail:
            self.tail(last)

    def measured(self, parts: int, at_end: bool) -> None:
        """A length, and the run that it measures."""
        d = self.d
        ahead = None
        if d.chance(8):
            self.runs += 1
            self.one(fixed=True)  # may lie in the run, before the length
            self.runs -= 1
            ahead = list(self.fields)[-1]
        name = self.fresh()
        types = (
            "u16",
            "u8",
            "i32",
            "u32",
            "i8",
            "i16",
            "i64",
            "u64",
            "uvarint",
            "varint",
            "varlong",
            "uvarlong",
            *VLQS,
        )
        spec: Tree = {"type": d.pick(types[:4] if self.plain else types)}
        self.may_pad = self.may_pad and spec["type"] in INTEGERS
        self.fields[name] = spec
        if not self.plain and d.chance(12):
            self.condition(spec)
        itself = d.chance(6) and spec["type"] in INTEGERS and "when" not in spec
        if d.chance(5) and not itself:
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
        spec["measures"] = self.run(name, inside, at_end, gap or itself)
        if itself:
            spec["measures"]["from"] = ahead or name
        self.see(name, spec)

    def sections(self) -> None:
        """Compressed arrays side by side, each with a codec and a length; the lengths stand in front of all, or of each."""
        d = self.d
        together = d.chance(2)
        by = self.codecs()
        made: list[tuple[str, str]] = []
        for _ in range(d.number(2, 3)):
            size, array = self.fresh(), self.fresh()
            made.append((size, array))
            self.fields[size] = {
                "type": d.pick(("u16", "i32", "u32", "u24")),
                "measures": {"from": array, "to": array},
            }
            self.see(size, self.fields[size])
            if not together:
                self.section(array, d.pick(by).path)
        for _, array in made if together else ():
            self.section(array, d.pick(by).path)

    def section(self, name: str, by: str) -> None:
        """An array that is compressed, up to the end of its measured run."""
        d = self.d
        spec: Tree = {"array": self.element(), "compressed": self.compressed(by)}
        if d.chance(2):
            spec["count"] = self.short()
        else:
            spec["until"] = "end"
        self.ends.add(name)
        self.fields[name] = spec
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
        self.fields[count] = {
            "type": d.pick(("u8", "i16", "u32", "varint", "uvarlong", *ALL_INTEGERS)),
            "counts": array,
        }
        if self.plain and self.fields[count]["type"] in ("u64", "uvarlong", *VLQS):
            self.fields[count]["type"] = "u16"
        spec: Tree = {"array": element or self.element()}
        if d.chance(6):
            self.condition(spec)
            if "when" in spec and d.chance(2):
                self.fields[count]["when"] = spec["when"]
        self.see(count, self.fields[count])
        if d.chance(3):
            self.one()
        if d.chance(8):
            spec["at_least"] = 1
        if not self.plain or d.chance(8):
            self.null(spec, self.fields[count]["type"])
        if "null" not in spec:
            self.by_version(self.fields[count])
        self.fields[array] = spec
        self.see(array, spec)
        if {"when", "null", "at_least"} & {*spec, *self.fields[count]}:
            return
        if not self.plain and d.chance(4):
            spec["more"] = -d.number(1, 2)
        if d.chance(3):
            other = self.fresh()
            self.fields[count]["counts"] = [array, other]
            self.fields[other] = {"array": d.pick(("u8", "i64", "varint", "bool"))}
            self.see(other, self.fields[other])
            if not self.plain and d.chance(2):
                self.fields[other]["more"] = d.number(1, 2)

    def checked(self, parts: int, at_end: bool) -> None:
        """A checksum, before or after the run that it covers."""
        d = self.d
        name = self.fresh()
        name_of = d.pick(READ_BY_KERNELS if self.plain and d.number(0, 7) else tuple(CHECK_WIDTHS))
        width = CHECK_WIDTHS[name_of]
        spec: Tree = {"type": f"u{width}", "checksum": name_of}
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
        if d.chance(8 if self.plain else 2):
            self.covered(name, spec, inside, first)
        if d.chance(4):
            spec["mask"] = d.pick((0x7F, 0x7FFF, 1, 0xF0F0))
            if d.chance(2):
                changes = {
                    "rotate_right": d.number(1, width - 1),
                    "add": Hexed(d.number(1, (1 << width) - 1)),
                }
                spec["mask"] = dict(d.some(list(changes.items()), 1))
        self.see(name, spec)

    def covered(self, name: str, spec: Tree, inside: list[str], first: bool) -> None:
        """Several ranges, or fields that count as zeros, perhaps the checksum itself among them."""
        d = self.d
        ranges: list[Tree] = [{"from": inside[0], "to": inside[-1]}]
        if len(inside) > 1 and d.chance(2):
            cut = d.number(1, len(inside) - 1)
            ranges = [
                {"from": inside[cut], "to": inside[-1]},
                {"from": inside[0], "to": inside[cut - 1]},
            ]
        elif d.chance(2):
            end = {"from": inside[0], "to": name} if first else {"from": name, "to": inside[-1]}
            if len(list(self.fields)) == list(self.fields).index(name) + 1 + len(inside) * (
                not first
            ):
                ranges = [end | {"zero": [name]}]
        for part in ranges:
            names = list(self.fields)
            run = names[names.index(part["from"]) : names.index(part["to"]) + 1]
            if d.chance(3):
                part["zero"] = list(dict.fromkeys([*part.get("zero", ()), *d.some(run, 1)]))
        earlier = [
            other
            for other in list(self.fields)[: list(self.fields).index(inside[0])]
            if other != name and isinstance(self.fields[other], dict)
            if "versions" not in self.fields[other]
            if "checksum" not in self.fields[other] or "covers" in self.fields[other]
            if not any(other in (part["from"], *part.get("zero", ())) for part in ranges)
        ]
        if earlier and d.chance(2):
            other = d.pick(earlier)
            ranges.insert(d.number(0, len(ranges)), {"from": other, "to": other})
        spec["covers"] = ranges if len(ranges) > 1 or d.chance(4) else ranges[0]

    def tail(self, last: bool) -> None:
        """What takes all that is left, and perhaps fields of fixed size after it."""
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
            spec = {"array": self.element()}
            if kind == "compressed":
                by = self.codecs()
                spec["compressed"] = self.compressed(d.pick(by).path)
                if d.chance(2):
                    spec["count"] = d.number(1, 3) if d.chance(6) else self.short()
                else:
                    spec["until"] = "end"
            else:
                spec["until"] = "end"
        else:
            spec = {kind if kind != "open" else "bytes": "rest"}
        if not self.plain and d.chance(3):
            spec = self.chosen(last=True) or spec
        self.fields[name] = spec
        self.see(name, spec)
        if d.chance(4) and ("bytes" in spec or "string" in spec):
            self.one(fixed=True)

    def codecs(self) -> list[Seen]:
        """The fields that can name a codec; there is always one."""
        if not any(
            s.type == "squeeze" and not s.nullable and s.versions is None for s in self.seen
        ):
            name = self.fresh()
            self.fields[name] = {"type": self.d.pick(("u8", "i16")), "enum": "squeeze"}
            self.see(name, self.fields[name])
        return [
            s for s in self.seen if s.type == "squeeze" and not s.nullable and s.versions is None
        ]

    def compressed(self, by: str) -> Tree:
        d = self.d
        out: Tree = {"by": by, "limit": d.pick((1 << 16, 1 << 20, 100, 1 << 40))}
        if d.chance(3):
            out["except"] = [d.pick(CODECS[1:])]
        mine = self.made.versions
        if mine is not None or d.chance(2):
            out["variants"] = {
                "lz4": {"write": "legacy-header-checksum", "read": "unchecked-header"}
            }
            if mine is not None and d.number(0, 3):
                out["variants"]["lz4"]["versions"] = str(mine[0])
        return out

    # ------------------------------------------------------------ single fields

    def one(self, fixed: bool = False) -> None:
        """One field of any type; a fixed one has a size that is known."""
        d = self.d
        name = self.fresh()
        kind = d.number(0, 5 if fixed else 14)
        if not fixed and self.varies() and d.chance(5):
            kind = 9  # few layouts have versions, and few fields of these are arrays
        if kind <= 3:
            spec = self.scalar(fixed)
        elif kind == 4:
            spec = self.bits(fixed)
        elif kind == 5:
            spec = {d.pick(("bytes", "string")): d.number(1, 4)}
            if d.chance(16 if self.plain else 4):
                spec["padded"] = True
        elif kind <= 8:
            length = self.short()
            spec = {d.pick(("string", "bytes")): length}
            self.null(spec, length)
            if d.chance(16 if self.plain else 6):
                spec = {d.pick(("string", "bytes")): "zero_terminated"}
            elif d.chance(16 if self.plain else 6) and self.may_pad:
                self.padding(name)
                return
            elif d.chance(16 if self.plain else 6):
                self.sized(name)
                return
        elif kind <= 10:
            spec = {"array": self.element()}
            spec |= (
                {"count": self.short()}
                if self.plain or d.chance(2)
                else {"length": self.short("compact")}
            )
            if d.chance(16 if self.plain else 6):
                spec = self.until(name)
            elif d.chance(6):
                spec.pop("length", None)
                spec["count"] = d.number(1, 3)
            elif d.chance(6):
                spec["at_least"] = d.number(0, 2)
            fixed = isinstance(spec.get("count"), int) or "until" in spec
            if not fixed and (not self.plain or d.chance(3)):
                self.null(spec, spec.get("count") or spec["length"])
        elif kind in (11, 13):
            holds = [m for m in self.kit.made if not m.open and self.may_hold(m)]
            spec = (
                {"layout": self.named(d.pick(holds))}
                if holds and not self.plain
                else {"bytes": "u8"}
            )
            if kind == 13 and not self.plain and d.chance(2):
                spec = self.local()
            if ("layout" in spec or "fields" in spec) and d.chance(2):
                spec |= self.present()
            elif not self.made.versions and not self.plain and not self.made.open and d.chance(4):
                spec = {"layout": self.made.name} | self.present()  # a chain
        elif kind == 12 and not self.plain and not self.made.open:
            spec = {
                "array": self.made.name,
                "count": d.pick(("u8", "compact")),
                "nesting": d.number(1, 3),
            }
            if self.made.versions is not None and not self.made.in_band:
                spec = {"bytes": "u8"}
        else:
            spec = self.scalar(fixed)
        if not fixed and not self.plain and self.kit.several and d.chance(3):
            spec = self.one_of_several() or spec
        self.documents(spec)
        self.order(spec)
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
        if not fixed:
            self.by_version(spec)
            self.fields[name] = self.fields[name] if isinstance(spec.get("type"), str) else spec

    def one_of_several(self) -> Tree | None:
        """A field that is one of several layouts, or an array of them, or a layout whose version is told."""
        d = self.d
        kind = d.number(0, 7)
        if kind < 2:
            return self.chosen()
        if kind < 7:  # their lengths are of many types
            element = self.chosen(element=True)
            return None if element is None else {"array": element, "count": self.short()}
        told = [m for m in self.kit.made if m.versions is not None and not m.open]
        if not told:
            return None
        spec: Tree = {"layout": d.pick(told).name, "version": self.telling()}
        return spec | (self.present() if d.chance(3) else {})

    def sized(self, name: str) -> None:
        """Bytes or text behind a length that is more or less than their number."""
        d = self.d
        size = self.fresh()
        self.fields[size] = {
            "type": d.pick(("u8", "i8", "u16", "i32") if self.plain else (*INTEGERS, *VARINTS)),
            "measures": {"from": name, "to": name},
            "excess": d.pick((1, 4, -1, -2)),
        }
        self.see(size, self.fields[size])
        self.fields[name] = {d.pick(("bytes", "string")): "rest"}
        self.see(name, self.fields[name])

    def padding(self, name: str) -> None:
        """Zeros up to a multiple."""
        spec: Tree = {"padding": self.d.pick((2, 4, 8, 3))}
        if self.d.chance(4):
            self.condition(spec)
        self.fields[name] = spec

    def present(self) -> Tree:
        """A number before a layout that says whether it is there."""
        d = self.d
        type_ = d.pick([s for s in SHORT if s != "compact"])
        signed = reach(type_)[0] < 0
        return {"present": type_, "null": d.pick((-1, 0, -3) if signed else (0, 0, 255))}

    def element(self) -> Any:
        """What an array holds."""
        d = self.d
        if self.varies() and not self.plain and d.chance(2):
            return self.text_element()
        if d.chance(2) and not (self.plain and d.number(0, 3)):
            return d.pick((self.text_element, self.text_element, self.local))()
        solid = [m for m in self.kit.made if not m.open and m.solid and self.may_hold(m)]
        if self.plain:
            solid = [m for m in solid if m.plain]
        if solid and d.chance(2):
            return self.named(d.pick(solid))
        return d.pick(
            [s for s in SCALARS if s not in (*VARINTS, "i24", "u24")] if self.plain else SCALARS
        )

    def until(self, name: str) -> Tree:
        """An array up to an element that says that it is the last."""
        d = self.d
        kind = d.number(0, 3)
        if kind == 0:
            type_ = d.pick(("u8", "i16", "uvarint", "i64"))
            return {"array": type_, "until": d.pick(("item == 0", "item > 1", "not item != 1"))}
        names = Names(d)
        last, other = names.fresh(), names.fresh()
        fields: Tree = {other: d.pick(SCALARS)}
        if kind == 1:
            fields |= {last: {"type": "u8", "counts": other}, other: {"array": d.pick(SCALARS)}}
            fields = {last: fields[last], other: fields[other]}
            return {"array": {"fields": fields}, "until": f"item.{last} == 0"}
        if kind == 2:
            fields[last] = "bool"
            return {"array": {"fields": fields}, "until": f"item.{last}"}
        fields[last] = {"type": d.pick(("i8", "u16", "varint")), "default": 2}
        operator = d.pick(("==", "<", ">="))
        return {"array": {"fields": fields}, "until": f"item.{last} {operator} {d.number(0, 2)}"}

    def varies(self) -> bool:
        """Whether there is more than one version."""
        return self.made.versions is not None and self.made.versions[0] < self.made.versions[1]

    def short(self, *without: str) -> str:
        """The type of a length or a count."""
        left_out = {*without, *(("i24", "u24", *VLQS) if self.plain else ())}
        return self.d.pick([name for name in SHORT if name not in left_out])

    def text_element(self) -> Tree:
        """Bytes or text in an array."""
        d = self.d
        if d.chance(8):
            return {d.pick(("string", "bytes")): d.number(1, 3), "padded": True}
        if d.chance(8):
            return {d.pick(("string", "bytes")): "zero_terminated"}
        spec: Tree = {
            d.pick(("string", "bytes")): self.short() if d.number(0, 3) else d.number(1, 3)
        }
        if not isinstance(spec.get("string", spec.get("bytes")), int):
            for _ in range(3 if self.made.versions is not None else 1):
                if "null" not in spec:  # often, since few of them differ between versions
                    self.null(spec, next(iter(spec.values())))
        return spec

    def local(self) -> Tree:
        """A few fields in the place of one; they take a byte or more."""
        d = self.d
        names = Names(d)
        fields: Tree = {names.fresh(): d.pick(SCALARS)}
        for _ in range(d.number(0, 3)):
            spec: Tree = {"type": d.pick(SCALARS)}
            if self.made.versions is not None and d.chance(6):
                spec["versions"] = f"{self.made.versions[1]}+"
            elif d.chance(5):
                spec = {"string": self.short()}
            elif d.chance(6):
                spec = {"fields": {names.fresh(): d.pick(SCALARS)}}
            fields[names.fresh()] = spec if set(spec) != {"type"} else spec["type"]
        return {"fields": fields}

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
