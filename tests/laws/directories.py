"""Random schema directories, as a Hypothesis strategy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from codecgen.check.names import RUNTIME
from tests.laws import apart, examples, given, messages, text_laws
from tests.laws.draws import Draw
from tests.laws.flexible import Flexibles
from tests.laws.keys import Kit, Made, Several
from tests.laws.layouts import CODECS, Maker
from tests.laws.names import Names
from tests.laws.payload_views import PayloadMaker
from tests.laws.rules import draw_fills, draw_rules, draw_secrets
from tests.laws.seen import ALL_INTEGERS, FIXED, SCALARS, numbers_of
from tests.laws.text_schemas import TextMaker
from tests.laws.views import ViewMaker
from tests.laws.world import Tree, World, reach

RELEASES = ("1.0", "1.1", "2.0.1")
FILES = (
    "a.yaml",
    "format.yaml",
    "x/row.yaml",
    "x/out.yaml",
    "list.yaml",
    "numpy.yaml",
    "numba.yaml",
    "views.yaml",
    "kernels.yaml",
)
VALUES = (
    "a",
    "b",
    "c",
    "none",
    "x",
    "value",
    "name",
    "mro",
    "label",
    "of",
    "item",
    "class_",
    "row",
    "self",
)


def told(type_: str) -> Tree:
    """The keys of a choice that is given the value that decides."""
    return {"given": {"value": type_}, "by": "value"}


@st.composite
def directories(draw: Any, views: bool | None = None) -> World:
    """A schema directory. Now and then `check` refuses one; whoever draws passes over it."""
    return Directory(Draw(draw), views).world()


class Directory:
    """Makes one directory."""

    def __init__(self, d: Draw, views: bool | None) -> None:
        self.d = d
        self.with_views = views
        taken = {"true", "false", "none", "true_", "false_", "none_", *RUNTIME, *SCALARS, "squeeze"}
        self.names = Names(d, taken)
        self.manifest: Tree = {"language": 1, "package": "laws_codecs", "title": "Made up"}
        self.documents: list[tuple[str, Tree]] = []  # (what it is, the document)
        self.kit = Kit(d, {}, names=self.names)

    def world(self) -> World:
        d = self.d
        self.head()
        self.kit.enums = self.enums()
        self.documents.append(("enums", {"enums": self.kit.enums}))
        views = d.number(0, 2) > 0 if self.with_views is None else self.with_views
        for _ in range(d.number(0, 2) if views else d.number(1, 4)):
            self.add(self.layout())
        if self.kit.made and d.chance(6 if views else 2):
            self.choices()
            for _ in range(d.number(1, 2)):
                self.add(self.layout())
            self.pin()
        if views:
            kind_of_view = PayloadMaker if d.chance(3) else ViewMaker
            maker = kind_of_view(self.kit, self.names)
            for kind, document in maker.documents():
                self.documents.append((kind, document))
        else:
            self.choices()
            self.pin()
        if d.chance(6):
            self.overhead()
        for _ in range(d.number(0, 2) if d.chance(4) else 0):
            maker = TextMaker(d, self.names.fresh(), bool(self.kit.releases))
            self.documents.append(("text", maker.document()))
        Flexibles(d, [document for _, document in self.documents]).make()
        given.add([document for _, document in self.documents], d)
        files = self.files()
        if d.chance(5):
            files = apart.split(files, d)
            self.manifest["uses"] = {apart.ALIAS: f"../{apart.ALIAS}"}
        elif d.chance(4):
            messages.add([document for _, document in self.documents], d)
        if "documents" in self.manifest and d.chance(3):
            folders = {
                path.rpartition("/")[0] or "."
                for path, one in files.items()
                if any("layout" in document for document in one) and not path.startswith("..")
            }
            if folders:
                self.manifest["documents"]["as_of_folders"] = d.some(sorted(folders), 1)
        world = World(self.manifest, files)
        seed = d.number(0, 1 << 30)
        examples.add(world, seed, bool(self.kit.releases))
        text_laws.add_examples(world, seed, bool(self.kit.releases))
        return world

    def head(self) -> None:
        d, m = self.d, self.manifest
        if d.chance(3):
            self.kit.releases = RELEASES
            m |= {
                "release_line": "rel",
                "releases": [*RELEASES],
                "links": {"doc_no": "https://made.up/{}"},
            }
            if d.chance(2):
                m["documents"] = {"as_of": [d.pick(RELEASES)]}
                if d.chance(2):
                    m["documents"]["at"] = "https://made.up/pages/{}.html"
        if d.chance(5):
            m["spelling"] = d.pick(("camel", "snake"))
        if d.chance(5):
            m["doc"] = "Nobody wrote them."
        if d.chance(8):
            one = {"rule": "B006", "at": "some.thing", "reason": "Nobody has it."}
            m["accepted_breaks"] = [one] if d.chance(2) else one

    def enums(self) -> dict[str, Tree]:
        d = self.d
        out: dict[str, Tree] = {}
        for _ in range(d.number(1, 3)):
            values: dict[str, Any] = {}
            names = list(dict.fromkeys(d.pick(VALUES) for _ in range(d.number(1, 4))))
            for name in names:
                number = d.pick((0, 1, 2, 3, 5, 7, -1, 127, 200, 1 << 15, 1 << 33))
                if number in [v if isinstance(v, int) else v["value"] for v in values.values()]:
                    continue
                values[name] = number
                if d.chance(4):
                    values[name] = {"value": number, "doc": "One."} | (
                        {"spelled": "One-" + name} if d.chance(2) else {}
                    )
                    if d.chance(3) and self.kit.releases:
                        values[name]["since"] = {"doc_no": 3}
            enum: Tree = {"values": values}
            if d.chance(3):
                enum["unknown"] = d.pick(("keep", "refuse"))
            if d.chance(4):
                enum["doc"] = "Things."
            out[self.names.fresh()] = enum
        out["squeeze"] = {"values": {name: i for i, name in enumerate(CODECS)}}
        return out

    def layout(self) -> Made:
        d = self.d
        versions = None
        if d.chance(3):
            low = d.number(0, 2)
            versions = (low, low + d.number(0, 2))
        near = self.kit.made[-1].name if self.kit.made else None
        framed = d.chance(4)
        maker = Maker(
            self.kit,
            self.names.fresh(near),
            versions=versions,
            plain=d.chance(2),
            may_be_open=not framed,
        )
        if framed:
            length = maker.fresh()
            maker.fields[length] = {"type": d.pick(("u16", "i32", "u8")), "measures": "rest"}
            maker.see(length, maker.fields[length])
            maker.runs, versions = 1, None
            maker.made.versions = None
        made = maker.layout(d.number(1, 6))
        if d.chance(3):
            self.derived(made)
        if d.chance(2):
            draw_rules(d, made, self.kit)
        if d.chance(2):
            draw_fills(d, made, self.kit.made)
        if d.chance(6):
            draw_secrets(d, made)
        if d.chance(3):
            made.tree["examples"] = []  # filled in when the values are known
        return made

    def add(self, made: Made) -> None:
        self.kit.made.append(made)
        self.documents.append(("layout", made.tree))

    def derived(self, made: Made) -> None:
        """Values that are worked out from the fields, and from those of elements."""
        d = self.d
        names = Names(
            d,
            set(made.tree["fields"])
            | {"wrap", "end_of", "item", "int", "str", "bytes", "bool", "float", "version"},
        )
        out: Tree = {}
        numbers = made.numbers
        if numbers:
            out[names.fresh()] = self.value(d.pick(numbers), numbers)
        for name, spec in made.tree["fields"].items():
            if isinstance(spec, dict) and "array" in spec and "versions" not in spec:
                element = next(
                    (m for m in self.kit.made if m.name == str(spec["array"]).partition("@")[0]),
                    None,
                )
                parts = element.numbers if element is not None else ()
                if parts and d.chance(2):
                    item = f"item.{d.pick(parts)}"
                    out[name] = {
                        Names(d, {"wrap", "end_of"}).fresh(): self.value(item, numbers or (item,))
                    }
        if out:
            made.tree["derived"] = out
            first = next(iter(out.values()))
            if "is" in first and made.versions and d.chance(2):
                first["versions"] = f"{made.versions[0]}+"
            if "is" in first and self.kit.releases and d.chance(2):
                first["since"] = {"doc_no": 6}

    def value(self, first: str, numbers: tuple[str, ...]) -> Tree:
        d = self.d
        text = f"{first} {d.pick('+-')} {d.pick([*numbers, '1', '70000'])}"
        if d.chance(3):
            text = f"if {first} > {d.number(0, 3)} then {text} else {d.pick(('null', '0', first))}"
        out: Tree = {"type": d.pick(("i64", "i32", "i16", "i8")), "is": text}
        if d.chance(4):
            out |= {"doc": "Worked out.", "unit": "ms"}
        return out

    def choices(self) -> None:
        """Choices of layouts that stand beside each other, by a field or by what a caller knows."""
        d, made = self.d, self.kit.made
        if d.chance(3):
            enum = d.pick([name for name in self.kit.enums if name != "squeeze"])
            cases = {}
            name, numbers = self.names.fresh(), numbers_of(self.kit.enums[enum])
            several = Several(name, list(numbers.values()), [], enum=enum)
            for value in self.kit.enums[enum]["values"]:
                cases[value] = self.case(d.pick(made), several)
            self.several({"choice": name, **told(enum), "cases": cases}, several)
        if d.chance(2):
            self.by_number()
        if d.chance(3):
            self.by_field()
        if d.chance(3):
            if d.chance(2):
                self.by_field()
            self.of_choices()

    def of_choices(self) -> None:
        """A choice of which a case is one of the choices that are there."""
        d = self.d
        fit = [s for s in self.kit.several if s.by is not None or s.enum is None]
        if not fit:
            return
        inner = fit[-1]
        cases: dict[str, str] = {}
        name = self.names.fresh()
        outer = replace(inner, name=name, numbers=[], cases=list(inner.cases), nested=True)
        if inner.by is None or d.chance(2):
            # the value that decides in the inner one is that which decides in this one
            for number in inner.numbers[:3]:
                cases[str(number)] = inner.name
                outer.numbers.append(number)
            if not cases:
                return
            tree = told(d.pick(("i64", "varlong"))) if inner.by is None else {"by": inner.by}
        elif inner.head is not None and d.chance(2):
            cases = {"0-126": inner.name, "127": d.pick(inner.cases).name}
            outer.by, outer.numbers, tree = inner.head, [0, 1, 126], {"by": inner.head}
            if any(m.versions is not None for m in inner.cases):
                del cases["127"]
        else:
            cases = {"1-3": inner.name, "7": inner.name}
            outer.by, outer.numbers, tree = None, [1, 2, 3, 7], told("u8")
        self.several({"choice": name, **tree, "cases": cases}, outer)
        if d.chance(2):
            self.add(self.layout())

    def case(self, m: Made, several: Several) -> str:
        """A layout as a case; now and then something else says in which version it is."""
        several.cases.append(m)
        if m.versions is None or m.in_band or m.versions[0] == m.versions[1]:
            return m.name
        if several.pinned or (not several.told and self.d.chance(2)):
            several.pinned = True
            return f"{m.name}@{m.versions[0]}"
        several.told = True
        return m.name

    def by_number(self) -> None:
        """A choice by a number that the caller has."""
        d = self.d
        type_ = d.pick(ALL_INTEGERS)
        several = Several(self.names.fresh(), [], [])
        cases: dict[str, str] = {}
        for key in dict.fromkeys(d.pick(("0", "1-3", "0x4", "7-7", "100-126")) for _ in range(3)):
            cases[key] = self.case(d.pick(self.kit.made), several)
            first, _, last = key.partition("-")
            several.numbers += range(int(first, 0), int(last or first, 0) + 1)
        self.several({"choice": several.name, **told(type_), "cases": cases}, several)

    def several(self, document: Tree, several: Several) -> None:
        self.documents.append(("choice", document))
        self.kit.several.append(several)

    def pin(self) -> None:
        """Cases whose versions nobody tells name one."""
        used = str([document for kind, document in self.documents if kind == "layout"])
        for kind, document in self.documents[::-1]:  # what holds others stands behind them
            if kind == "choice" and f"'choice': '{document['choice']}'" in used:
                used += "".join(f"'choice': '{ref}'" for ref in document["cases"].values())
        for kind, document in self.documents:
            if kind == "choice" and f"'choice': '{document['choice']}'" not in used:
                for key, reference in document["cases"].items():
                    m = next((m for m in self.kit.made if m.name == reference), None)
                    if m is not None and m.versions is not None and not m.in_band:
                        document["cases"][key] = f"{reference}@{m.versions[0]}"

    def by_field(self) -> None:
        d = self.d
        by, type_, endian = (
            self.kit.d.pick(("kind", "x", "magic")),
            d.pick(FIXED if d.number(0, 3) else ALL_INTEGERS),
            d.pick(("big", "little")),
        )
        fixed = {"at_first": d.pick(FIXED)} if d.chance(2) else {}
        head: Tree = {"head": {"type": "u8"}} if d.chance(2) else {}
        fixed = head | fixed
        cases: dict[str, str] = {}
        several = Several(self.names.fresh(), [], [], by=by)
        low, high = reach(type_)
        enum = d.pick(list(self.kit.enums)) if d.chance(3) else None
        words = numbers_of(self.kit.enums[enum]) if enum is not None else {}
        words = {word: number for word, number in words.items() if low <= number <= high}
        numbers = tuple(words.values()) or (0, 1, 2, 100, 127, low, high)
        for number in dict.fromkeys(d.pick(numbers) for _ in range(d.number(1, 3))):
            word = next((word for word, found in words.items() if found == number), None)
            versions = (0, d.number(0, 1)) if d.chance(4) else None
            maker = Maker(self.kit, self.names.fresh(), versions=versions)
            maker.fields |= fixed
            maker.fields[by] = {"type": type_, "const": number if word is None else word}
            if word is not None:
                maker.fields[by]["enum"] = enum
            maker.names.taken |= {by, "at_first", "head"}
            made = maker.layout(d.number(1, 4))
            made.tree["endian"] = endian
            self.add(made)
            key = hex(number) if number >= 0 and d.chance(3) else str(number)
            key = word if word is not None and d.chance(2) else key
            if word is None and number == 127 and d.chance(2):
                maker.fields[by] = {"type": type_}
                key = "120-127"
            several.cases.append(made)
            cases[key] = f"{made.name}@0" if versions and not made.in_band else made.name
            several.pinned = several.pinned or "@" in cases[key]
        assert low <= 0 and high >= 127
        choice: Tree = {"choice": several.name, "by": by, "cases": cases}
        if d.chance(3):
            choice["doc"] = "One of them."
        if d.chance(3) and self.kit.releases:
            choice["since"] = {"doc_no": 8}
        several.head = "head" if head else None
        several.numbers = [self.number_of(key, words) for key in cases if "-" not in key[1:]]
        self.several(choice, several)

    @staticmethod
    def number_of(key: str, words: dict[str, int]) -> int:
        """The number of a case that is one."""
        return words[key] if key in words else int(key, 0)

    def overhead(self) -> None:
        """A table of what a layout adds."""
        d = self.d
        plain = [m for m in self.kit.made if m.versions is None]
        if not plain:
            return
        made = d.pick(plain)
        fields = made.tree["fields"]
        sized = [
            n for n, s in fields.items() if isinstance(s, dict) and ("bytes" in s or "string" in s)
        ]
        column: Tree = {
            "title": "One",
            "layout": made.name,
            "each": {n: 3 for n in sized[:1] if not isinstance(fields[n].get("bytes"), int)},
        }
        if made.numbers:
            column["number"] = d.pick(made.numbers)
        arrays = [
            (n, m)
            for n, s in fields.items()
            for m in self.kit.made
            if isinstance(s, dict) and s.get("array") == m.name
        ]
        if arrays and d.chance(2):
            name, held = d.pick(arrays)
            column = {"title": "Many", "layout": made.name, "array": name, "each": {}}
            if held.numbers:
                column["number"] = d.pick(held.numbers)
        overhead = {"doc": "Bytes.", "sizes": [1, 10], "columns": [column], "notes": "None."}
        made.tree["documentation"] = {"overhead": overhead}

    def files(self) -> dict[str, list[Tree]]:
        """The documents in files: all in one, or enums and views apart."""
        d = self.d
        first = d.pick(FILES)
        out: dict[str, list[Tree]] = {first: []}
        apart = {kind: d.pick(FILES) for kind in ("enums", "view", "choice") if d.chance(4)}
        for kind, document in self.documents:
            out.setdefault(apart.get(kind, first), []).append(document)
        return {name: documents for name, documents in out.items() if documents}
