"""Values of layouts, made from a seed: whatever a builder must write."""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from codecgen.schema.expression import EndOf
from tests.laws.bytes_of import tag_default, version_of
from tests.laws.chosen import by_field, cases, choice_in, layouts_in, number_of, versions_of
from tests.laws.flexible import GIVEN
from tests.laws.meaning import Meaning, look_at, look_in, words_of
from tests.laws.none import counted_arrays
from tests.laws.world import (
    Facts,
    Quoted,
    Tree,
    bits_of,
    free_bits,
    in_range,
    listed,
    literal,
    parsed,
    reach,
    version_field,
)

TEXTS = ("", "a", "ab", "\u00e4", "\u20ac", "\U0001f600", "x" * 17, "null", "0")
TRIES = 12


class NoValue(Exception):
    """No value was found that keeps all rules."""


class Full(dict[str, Any]):
    """All fields of a layout but lengths and checksums; ``left`` are those that the builder works out."""

    def __init__(self) -> None:
        super().__init__()
        self.left: set[str] = set()
        self.meaning: Meaning | None = None
        self.looked_up: dict[str, Any] = {}


def full(value: Any) -> Any:
    """A default, which may be that of a layout."""
    if not isinstance(value, dict):
        return value
    out = Full()
    out.update(value)
    return out


def given(value: Any) -> Any:
    """What is handed to a builder."""
    if isinstance(value, Full):
        return {name: given(part) for name, part in value.items() if name not in value.left}
    if isinstance(value, dict):
        return dict(value)
    return [given(part) for part in value] if isinstance(value, list) else value


def looks_up(fields: list[tuple[str, Tree]]) -> tuple[str, str]:
    """The field that has the number of an element, and the array."""
    return next((name, spec["looks_up"]) for name, spec in fields if "looks_up" in spec)


class Values:
    """Makes values of one directory. ``broken``: now and then a rule is not kept, and ``self.wrong`` says so."""

    def __init__(self, facts: Facts, r: random.Random) -> None:
        self.facts = facts
        self.r = r

    def layout(
        self,
        name: str,
        version: int | None,
        deep: int = 0,
        forced: Mapping[str, int] | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> Full:
        """A value of a layout; ``forced`` fields have these values, and ``told`` is what it is given. Raises NoValue."""
        tree = self.facts.layouts[name]
        fields = self.facts.fields(name, version)
        by_name = dict(fields)
        out = Full()
        out.update(told or {})
        out.left |= {one for one in told or {} if self.r.random() < 0.7}
        meaning = out.meaning = Meaning(look_in(out, version), words_of(self.facts, name))
        made: dict[str, Any] = {}
        counts = {array: field for field, spec in fields for array in counted_arrays(spec)}
        asked = self.asked(fields)
        for field, spec in fields:
            if "tags" in spec:
                out[field] = self.tags(spec["tags"])
                if not out[field]:
                    out.left.add(field)
                continue
            if "tag" in spec and self.r.random() < 0.4:
                out[field] = full(tag_default(self.facts, spec))
                if self.r.random() < 0.7:
                    out.left.add(field)
                continue
            if "when" in spec and not meaning.holds(spec["when"]):
                out[field] = None
                if "measures" in spec or "checksum" in spec or "counts" in spec:
                    out.left.add(field)
                continue
            for attempt in range(TRIES):
                out.left.discard(field)
                if forced is not None and field in forced and "const" not in spec:
                    out[field] = forced[field]
                elif field in asked and "const" not in spec and self.r.random() < 0.9:
                    out[field] = self.r.choice(asked[field])
                elif choice_in(spec) is not None or "version" in spec:
                    out[field] = self.several(name, field, spec, out, made, version, deep)
                else:
                    out[field] = self.field(
                        field, spec, by_name, out, meaning, made, version, deep, tree
                    )
                if self.kept(spec, meaning):
                    break
                if field in counts.values() or attempt == TRIES - 1:
                    raise NoValue(field)
        for derived, code in tree.get("derived", {}).items():
            if "is" in code and "[" in code["is"]:
                number, array = out[looks_up(fields)[0]], out[looks_up(fields)[1]]
                out.looked_up[derived] = array[number - 1] if 0 < number <= len(array) else None
        return out

    def asked(self, fields: list[tuple[str, Tree]]) -> dict[str, list[int]]:
        """What decides for choices, and tells versions: values that there is something for."""
        out: dict[str, list[int]] = {}
        types = {name: spec.get("type") for name, spec in fields}
        for _, spec in fields:
            choice = choice_in(spec)
            found = {} if choice is None else cases(self.facts, choice["choice"])
            where = spec if choice is None else choice
            references = [spec.get("layout", "")]
            if choice is not None:
                references = layouts_in(self.facts, choice["choice"])
            known = {
                "given": list(found),
                "version": [
                    v
                    for reference in references
                    if "version" in where
                    for v in self.facts.versions(reference.partition("@")[0])
                    if v is not None
                ],
            }
            for key, numbers in known.items():
                name = where.get(key)
                if key == "given" and choice is not None and name is not None:
                    name = name[self.facts.choices[choice["choice"]]["by"]]
                if isinstance(name, str) and isinstance(types.get(name), str):
                    low, high = reach(types[name])
                    fitting = [n for n in numbers if low <= n <= high]
                    if fitting:
                        out.setdefault(name, fitting)
        return out

    def several(
        self,
        layout: str,
        name: str,
        spec: Tree,
        out: Full,
        made: dict[str, Any],
        version: int | None,
        deep: int,
    ) -> Any:
        """One of several layouts, or an array of them."""
        r = self.r
        choice = choice_in(spec)
        if "array" not in spec or choice is None:
            if "null" in spec and r.random() < 0.25:
                return None
            return self.chosen(layout, choice or spec, out, version, deep)
        if name in made:
            return None if made[name] is None else list(made[name])
        if "null" in spec and r.random() < 0.25:
            made[name] = None
            return None
        number = spec.get("at_least", 0) + r.choice((0, 0, 1, 1, 2, 3))
        made[name] = [
            None
            if "null" in choice and r.random() < 0.2
            else self.chosen(layout, choice, out, version, deep)
            for _ in range(number)
        ]
        return list(made[name])

    def chosen(self, layout: str, spec: Tree, out: Full, version: int | None, deep: int) -> Any:
        """A value of one of several layouts, or bytes where there is no case."""
        r, facts = self.r, self.facts
        if deep > 4:
            raise NoValue("too deep")
        by: str | None = None
        number: int | None = None
        forced: dict[str, int] = {}
        decided = False  # by what is in it: bytes without a case might have one
        reference: str | None
        if "layout" in spec:
            reference = spec["layout"]
        else:
            known = cases(facts, spec["choice"])
            by = by_field(facts.choices[spec["choice"]])
            number = (
                r.choice(list(known))
                if by is not None
                else number_of(facts, layout, spec, out, version)
            )
            reference = None if number is None else known.get(number)
            if by is not None and number is not None:
                forced[by] = number
            while reference in facts.choices:
                assert reference is not None and number is not None
                inner = by_field(facts.choices[reference])
                known = cases(facts, reference)
                if inner is not None:
                    decided, number = True, forced.get(inner, r.choice(list(known)))
                    forced[inner] = number
                reference = known.get(number)
        there = (
            [] if reference is None else versions_of(facts, layout, spec, reference, out, version)
        )
        if reference is None or not there:
            if "unknown" in spec and by is None and not decided:
                return bytes(r.choices(range(256), k=r.choice((0, 1, 2, 5))))
            raise NoValue("no case")
        own = version_field(facts.layouts[reference.partition("@")[0]])
        wanted = r.choice(there) if own is not None else there[0]
        if own is not None and own in forced:
            wanted = forced[own]
        told = self.told(spec, out) if "layout" in spec else None
        value = self.layout(reference.partition("@")[0], wanted, deep + 1, forced, told)
        value.left -= {own, *forced}
        return value

    def tags(self, taken: list[int]) -> list[Any]:
        """Tagged fields that a layout does not name."""
        r = self.r
        tags = {
            r.choice((0, 1, 4, 5, 127, 128, 500, (1 << 31) - 1))
            for _ in range(r.choice((0, 0, 1, 3)))
        }
        return [
            {"tag": tag, "data": r.randbytes(r.choice((0, 1, 3, 130)))}
            for tag in sorted(tags - set(taken))
        ]

    def kept(self, spec: Tree, meaning: Meaning) -> bool:
        """Whether the rules about a field hold."""
        if "refuse" in spec and meaning.holds(spec["refuse"]):
            return False
        return "valid" not in spec or meaning.holds(spec["valid"])

    def field(
        self,
        name: str,
        spec: Tree,
        fields: dict[str, Tree],
        out: Full,
        meaning: Meaning,
        made: dict[str, Any],
        version: int | None,
        deep: int,
        tree: Tree,
    ) -> Any:
        r = self.r
        if "measures" in spec or "checksum" in spec:
            out.left.add(name)
            return 0
        if "counts" in spec:
            first, *others = counted_arrays(spec)
            array = fields[first]
            if choice_in(array) is None:
                items = self.array(first, array, out, made, version, deep)
            else:
                items = self.several(tree["layout"], first, array, out, made, version, deep)
            for other in others:
                more = array.get("more", 0) - fields[other].get("more", 0)
                forced = {"count": None if items is None else len(items) - more}
                self.array(other, fields[other] | forced, out, made, version, deep)
            if "when" in array and not meaning.holds(array["when"]):
                return r.choice((0, 0, 3))  # nothing is there to be counted
            out.left.add(name)
            return array["null"] if items is None else len(items) - array.get("more", 0)
        if "looks_up" in spec:
            there = len(out[spec["looks_up"]])
            return there + 1 if r.random() < 0.1 else r.randint(0, there)
        if spec.get("outside") is not None and "array" not in spec:
            data = b"~" * self.number_outside(spec, out)
            return data.decode() if "string" in spec else data
        if "const" in spec or spec.get("is") == "version":
            if r.random() < 0.8:
                out.left.add(name)
            words = self.facts.values(spec["enum"]) if "enum" in spec else {}
            return literal(spec, spec.get("const", version), words)
        default = spec.get("absent", spec.get("default"))
        may = "absent" in spec or ("default" in spec and default != {})
        if default == "null" and "array" in spec and name in made:
            may = False  # another field has counted it
        if isinstance(default, list) and "null" in spec:
            may = False
        if may and r.random() < 0.4:
            value = self.default(default, spec, fields, out, meaning, made, version, deep)
            if value is not None or "null" in spec:
                out.left.add(name)
                return value
        if "padding" in spec:
            out.left.add(name)
            return None
        if "array" in spec:
            return self.array(name, spec, out, made, version, deep)
        if "bits" in spec:
            return self.bits(name, spec, meaning, version)
        if "layout" in spec:
            own = spec["layout"] == tree.get("layout")
            if "null" in spec and (r.random() < 0.3 or (own and deep > 2)):
                return None
            return self.held(spec["layout"], version, deep, told=self.told(spec, out))
        return self.plain(spec)

    def default(
        self,
        default: Any,
        spec: Tree,
        fields: dict[str, Tree],
        out: Full,
        meaning: Meaning,
        made: dict[str, Any],
        version: int | None,
        deep: int,
    ) -> Any:
        """What the builder writes: None also where it can write nothing."""
        if isinstance(default, list) or default is None:
            return None
        if isinstance(default, dict) or ("type" not in spec and isinstance(default, Quoted)):
            return literal(spec, default, {})
        if isinstance(default, int):
            return bool(default) if spec.get("type") == "bool" else default
        words = self.facts.values(spec["enum"]) if "enum" in spec else {}
        if default in words:
            return words[default]
        node = parsed(default)
        if isinstance(node, EndOf):
            name = node.array.names[0]
            if name not in out:
                array = fields[name]
                out[name] = self.array(name, array, out, made, version, deep)
                value = meaning.value(node)
                del out[name]
                return value if self.fits(value, spec) else None
        try:
            value = meaning.value(node)
        except LookupError:
            return None
        return value if self.fits(value, spec) else None

    def fits(self, value: Any, spec: Tree) -> bool:
        if isinstance(value, bool) or not isinstance(value, int) or "type" not in spec:
            return (
                value is None
                or "type" not in spec
                or spec["type"] in ("bool", "uuid", "f32", "f64")
            )
        low, high = reach(spec["type"])
        known = (
            "enum" not in spec
            or self.facts.unknown(spec["enum"])
            or value in self.facts.values(spec["enum"], spec.get("only")).values()
        )
        return low <= value <= high and known

    # ------------------------------------------------------------ by type

    def plain(self, spec: Tree) -> Any:
        """A value of a number, a boolean, a uuid, bytes or text."""
        r = self.r
        if "enum" in spec:
            if self.facts.unknown(spec["enum"]) and r.random() < 0.2:
                return self.number(spec["type"])
            return r.choice(list(self.facts.values(spec["enum"], spec.get("only")).values()))
        if "type" in spec:
            return self.scalar(spec["type"])
        key = "bytes" if "bytes" in spec else "string"
        length = spec[key]
        if isinstance(length, int):
            number = r.randint(0, length) if spec.get("padded") else length
            data = bytes(r.choice(b"ab~0") for _ in range(number))
            return data.decode() if key == "string" else data
        if "null" in spec and r.random() < 0.25:
            return None
        text = r.choice(TEXTS)
        data = (
            text.encode()
            if key == "string"
            else bytes(r.choices(range(256), k=r.choice((0, 1, 2, 3, 9))))
        )
        if length == "zero_terminated":
            data = data.replace(b"\0", b"")
        size = len(data)
        other = length in ("rest", "compact", "zero_terminated")
        if not other and (size > reach(length)[1] or size == spec.get("null")):
            data = b"z" if spec.get("null") == 0 else b""
        return data.decode() if key == "string" else data

    def scalar(self, type_: str) -> Any:
        r = self.r
        if type_ == "bool":
            return r.random() < 0.5
        if type_ == "uuid":
            return uuid.UUID(int=r.choice((0, 1, r.getrandbits(128))))
        if type_ == "f32":
            return r.choice((0.0, 1.0, -2.5, 2.0**100, float("inf"), float(r.getrandbits(24))))
        if type_ == "f64":
            return r.choice(
                (0.0, 1.0, -2.5, 1e300, float("inf"), struct.unpack(">d", r.randbytes(8))[0])
            )
        return self.number(type_)

    def number(self, type_: str) -> int:
        low, high = reach(type_)
        r = self.r
        kind = r.random()
        if kind < 0.6:
            value = r.choice((0, 1, 2, 3, 5, 9, -1, -2))
        elif kind < 0.8:
            value = r.choice(
                (low, high, low + 1, high - 1, 63, 64, 127, 128, 255, 256, 8191, 8192, -64, -65)
            )
        else:
            value = r.randint(low, high)
        return value if low <= value <= high else high if value > 0 else low

    def bits(self, name: str, spec: Tree, meaning: Meaning, version: int | None) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for member, bit in spec["members"].items():
            if not in_range(bit.get("versions"), version):
                continue
            low, high = bits_of(bit["at"]) if "at" in bit else free_bits(spec, version)
            if "at" not in bit:
                out[member] = 0
            elif "enum" in bit:
                out[member] = self.r.choice(
                    list(self.facts.values(bit["enum"], bit.get("only")).values())
                )
            elif low == high:
                out[member] = self.r.random() < 0.5
            else:
                out[member] = self.r.choice((0, 1, (1 << high - low + 1) - 1))
        return out

    def told(self, spec: Tree, out: Full) -> dict[str, Any] | None:
        """What a field gives to the layout that it holds."""
        if "given" not in spec or out.meaning is None:
            return None
        name = str(spec.get("layout", spec.get("array"))).partition("@")[0]
        values: dict[str, Any] = {}
        for one, type_ in self.facts.layouts[name]["given"].items():
            enum = isinstance(type_, str) and type_ in self.facts.enums
            words = self.facts.values(type_) if enum else {}
            value = spec["given"][one]
            values[one] = words[value] if value in words else out.meaning.of(value)
        return values

    def held(
        self,
        reference: str,
        holder: int | None,
        deep: int,
        same: bool = False,
        told: Mapping[str, Any] | None = None,
    ) -> Full:
        if deep > 4:
            raise NoValue("too deep")
        versions = self.facts.held(reference, holder)
        version = versions[0] if same else self.r.choice(versions)
        name = reference.partition("@")[0]
        own = version_field(self.facts.layouts[name])
        if own is None:
            version = versions[0]
        value = self.layout(name, version, deep + 1, told=told)
        if own is not None and "@" not in reference:
            value.left.discard(own)  # nothing else says which
            assert version_of(self.facts, reference, holder, value) == version
        return value

    def array(
        self, name: str, spec: Tree, out: Full, made: dict[str, Any], version: int | None, deep: int
    ) -> list[Any] | None:
        """The elements; the same ones whenever a layout is asked for them."""
        if name in made:
            return None if made[name] is None else list(made[name])
        r = self.r
        if "null" in spec and r.random() < 0.25:
            made[name] = None
            return None
        least = spec.get("at_least", 0)
        most = 0 if deep > 2 and "nesting" in spec else 3
        number = least + r.choice((0, 0, 1, 1, 2, most))
        if "nesting" in spec and deep >= spec["nesting"]:
            number = least
        if isinstance(spec.get("count"), int):
            number = spec["count"]
        if "outside" in spec:
            number = self.number_outside(spec, out)
        element = spec["array"]
        if isinstance(element, dict):
            items = [self.plain(element) for _ in range(number)]
        elif element.partition("@")[0] in self.facts.layouts:
            own = element.partition("@")[0]
            told = self.told(spec, out)
            items = [
                self.held(element, version, deep, own == _owner(self.facts, spec), told)
                for _ in range(number)
            ]
        else:
            items = [self.scalar(element) for _ in range(number)]
        if spec.get("until", "end") != "end":
            items = self.up_to_the_last(spec["until"], spec, version, deep, self.told(spec, out))
        made[name] = items
        return list(items)

    def number_outside(self, spec: Tree, out: Full) -> int:
        """How many there are by a value from outside. Raises NoValue where that is none, or too many."""
        number = int(out[spec["outside"]] + spec["more"])
        if not 0 <= number < 300:
            raise NoValue("a number from outside")
        return number

    def up_to_the_last(
        self,
        until: str,
        spec: Tree,
        version: int | None,
        deep: int,
        told: Mapping[str, Any] | None,
    ) -> list[Any]:
        """Elements of which the last fulfils a condition, and no other."""
        most = self.r.choice((1, 1, 2, 4))
        items: list[Any] = []
        for _ in range(100):
            element = spec["array"]
            held = element.partition("@")[0] in self.facts.layouts
            item = self.held(element, version, deep, told=told) if held else self.scalar(element)
            if Meaning(partial(look_at, item), {}).holds(until):
                return [*items, item]
            items = [*items, item][: most - 1]
        raise NoValue("no last element")


def _owner(facts: Facts, spec: Tree) -> str | None:
    """The layout that an array stands in."""
    for name, tree in facts.layouts.items():
        if any(part is spec.get(GIVEN, spec) for part in tree["fields"].values()):
            return name
    return None


def names_of(spec: Tree, key: str) -> list[str]:
    return [str(word) for word in listed(spec.get(key))]
