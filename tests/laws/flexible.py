"""Flexible layouts: made of random ones by taking out lengths, and what the YAML means then, version by version."""

from __future__ import annotations

from typing import Any

from tests.laws.draws import Draw
from tests.laws.none import counted_arrays

Tree = dict[str, Any]
WORDS = ("string", "bytes")
OLD = {"string": "i16", "bytes": "i32", "count": "i32"}
UNKNOWN = "unknown_tags"
GIVEN = "as the YAML has it"
"""The key under which a field that was settled has what it was made of."""

# ------------------------------------------------------------ what it means


def first_of(tree: Tree) -> int | None:
    """The first flexible version of a layout; None where none is."""
    said = tree.get("flexible")
    return None if said is None or said == "never" else int(str(said).rstrip("+"))


def is_flexible(tree: Tree, version: int | None) -> bool:
    first = first_of(tree)
    return first is not None and (version is None or version >= first)


def there(versions: Any, version: int | None) -> bool:
    low, _, high = str(versions).rstrip("+").partition("-")
    open_end = str(versions).endswith("+")
    return version is None or (int(low) <= version and (open_end or version <= int(high or low)))


def settled(spec: Tree, tree: Tree, version: int | None, counted: bool) -> Tree:
    """A field with the lengths that its layout has in a version."""
    if "flexible" not in tree:
        return spec
    new = "tag" in spec or is_flexible(tree, version)
    out = {key: value for key, value in spec.items() if key != "nullable"}
    implicit = spec.get("type") in WORDS
    if implicit:
        word = out.pop("type")
        out[word] = "compact" if new else OLD[word]
    elif "array" in spec:
        if spec["array"] in WORDS:
            word = spec["array"]
            out["array"] = {word: "compact" if new else OLD[word]}
        implicit = (
            not {"count", "length", "until", "compressed", "outside"} & set(spec) and not counted
        )
        if implicit:
            out["count"] = "compact" if new else OLD["count"]
    if "nullable" in spec and there(spec["nullable"], version):
        if implicit:
            out["null"] = 0 if new else -1
        elif "tag" in spec:
            out |= {"present": "uvarint", "null": 0}
        else:
            out |= {"present": "i8", "null": -1}
    return spec if out == spec else out | {GIVEN: spec}


def sections(tree: Tree, version: int | None) -> list[tuple[str, Tree]]:
    """The section of tagged fields of a version, as a field; ``tags`` are those that the layout has."""
    if not is_flexible(tree, version):
        return []
    tags = [spec["tag"] for spec in tree.get("tagged", {}).values()]
    return [(UNKNOWN, {"tags": tags})]


# ------------------------------------------------------------ random ones


class Flexibles:
    """Makes layouts of a directory flexible. ``documents`` has them in an order in which those that are held come first."""

    def __init__(self, d: Draw, documents: list[Tree]) -> None:
        self.d = d
        self.layouts = {doc["layout"]: doc for doc in documents if "layout" in doc}
        self.views = [doc for doc in documents if "view" in doc and isinstance(doc["of"], str)]
        self.choices = {doc["choice"]: doc for doc in documents if "choice" in doc}
        self.ended = {rows["of"] for view in self.views for rows in view["rows"] if "each" in rows}

    def make(self) -> None:
        if not self.d.chance(2):
            return
        for name, tree in self.layouts.items():
            if not self.d.chance(3):
                self.one(name, tree)

    def one(self, name: str, tree: Tree) -> None:
        d = self.d
        specs = [spec for spec in tree["fields"].values() if isinstance(spec, dict)]
        versions = str(tree["versions"]) if "versions" in tree else None
        low, _, high = (versions or "0").partition("-")
        self.low, self.high = int(low), int(high or low)
        first = d.number(self.low, self.high) if versions is not None else 0
        open_end = any(self.rests(spec) for spec in specs) or self.ranges_meet(tree)
        if d.chance(6) or name in self.ended or open_end:
            tree["flexible"] = "never"
        elif all(self.agrees(spec, name, first, versions) for spec in specs):
            tree["flexible"] = f"{first}+"
        else:
            tree["flexible"] = "never"
        self.sections = tree["flexible"] != "never"
        counted = {array for spec in specs for array in counted_arrays(spec)}
        tree["fields"] = {
            key: self.without_length(spec, key in counted) for key, spec in tree["fields"].items()
        }
        accepts = [a for a in tree.pop("accepts", []) if a not in ("negative_null", "any_present")]
        if tree["flexible"] == "never":
            accepts = [a for a in accepts if a != "overlong_varints"]
        else:
            self.tagged(tree, first, versions)
            if not self.views and d.chance(3):
                self.inside(tree["fields"])
            if d.chance(2):
                accepts.append("loose_tags")
        if accepts:
            tree["accepts"] = accepts

    def inside(self, fields: Tree) -> None:
        """One more field with fields in its place, which are flexible too."""
        d = self.d
        if "inside" in fields:
            return
        inner: Tree = {"fields": {"a": d.pick(WORDS), "b": d.pick(("u8", *WORDS))}}
        fields["inside"] = d.pick(({"array": inner}, inner))
        if d.chance(2):
            fields["inside"] = fields["inside"] | {"accepts": ["loose_tags"]}

    def rests(self, spec: Tree, around: tuple[str, ...] = ()) -> bool:
        """Whether a field may take what is left; ``around`` are the layouts that are looked through."""
        name = str(spec.get("layout", "")).partition("@")[0]
        held = self.layouts[name]["fields"] if name in self.layouts and name not in around else {}
        inside = [inner for inner in held.values() if isinstance(inner, dict)]
        if "rest" in (spec.get("bytes"), spec.get("string")) or {"until", "compressed"} & set(spec):
            return True
        return any(self.rests(inner, (*around, name)) for inner in inside)

    def ranges_meet(self, tree: Tree) -> bool:
        """Whether a range ends with the last field: the section is not in it."""
        last = list(tree["fields"])[-1]
        ranges = [
            spec[key]
            for spec in tree["fields"].values()
            if isinstance(spec, dict)
            for key in ("measures", "covers")
            if isinstance(spec.get(key), dict)
        ]
        return any(found.get("to") == last for found in ranges)

    def agrees(self, spec: Tree, own: str, first: int, versions: str | None) -> bool:
        """Whether what a field holds says for itself that it is flexible, in the same versions."""
        name, at, _ = str(spec.get("layout", spec.get("array", ""))).partition("@")
        held = self.layouts.get(name)
        if held is None or name == own:
            return True
        if "flexible" not in held:
            return False
        says = any(isinstance(f, dict) and "is" in f for f in held["fields"].values())
        if at or says or "versions" not in held or versions is None:
            return True
        low, _, high = str(held["versions"]).partition("-")
        both = range(max(self.low, int(low)), min(self.high, int(high or low)) + 1)
        return all(
            is_flexible(held, v) is (v >= first) or held["flexible"] == "never" for v in both
        )

    def without_length(self, spec: Any, counted: bool) -> Any:
        """A field without the length or the count that its layout settles."""
        d = self.d
        if not isinstance(spec, dict) or "endian" in spec or d.chance(4):
            return spec
        out = dict(spec)
        if "fields" in spec:
            out["fields"] = {k: self.without_length(v, False) for k, v in spec["fields"].items()}
        key = next((word for word in WORDS if isinstance(spec.get(word), str)), None)
        if key is not None and spec[key] != "rest" and not isinstance(spec.get("null"), dict):
            del out[key]
            out = {"type": key} | out
            self.nullable(out)
        elif "array" in spec:
            self.array(out, counted)
        elif isinstance(spec.get("present"), str) and not isinstance(spec["null"], dict):
            del out["present"]
            self.nullable(out)
        if "accepts" in out and out != spec:
            kept = [a for a in out["accepts"] if a in ("invalid_utf8", "trailing_bytes")]
            del out["accepts"]
            if kept:
                out["accepts"] = kept
        inside = out["array"] if isinstance(out.get("array"), dict) else out
        if "fields" in inside and self.sections and d.chance(3):
            out["accepts"] = [*out.get("accepts", ()), "loose_tags"]
        bare = set(out) == {"type"} and out["type"] in WORDS and d.number(0, 3)
        return out["type"] if bare else out

    def array(self, out: Tree, counted: bool) -> None:
        element = out["array"]
        if isinstance(element, dict) and "fields" in element:
            inside = {k: self.without_length(v, False) for k, v in element["fields"].items()}
            out["array"] = element | {"fields": inside}
        elif isinstance(element, dict) and not {"null", "choice"} & set(element):
            key = next(iter(element))
            if isinstance(element[key], str):
                out["array"] = key
        own = "compressed" in out or isinstance(out.get("null"), dict)
        if isinstance(out.get("count"), str) and not counted and not own:
            del out["count"]
            self.nullable(out)

    def nullable(self, out: Tree) -> None:
        """Say in which versions a field may be null that was nullable."""
        if "null" not in out:
            return
        del out["null"]
        low = (
            self.low
            if "versions" in out or self.high == self.low
            else self.d.number(self.low, self.high)
        )
        out["nullable"] = f"{low}+" if self.high > self.low and self.d.chance(2) else "0+"

    # ------------------------------------------------------------ tagged fields

    def tagged(self, tree: Tree, first: int, versions: str | None) -> None:
        d = self.d
        out: Tree = {}
        taken = set(tree["fields"])
        for _ in range(d.number(0, 4)):
            name = f"t{len(out)}" if f"t{len(out)}" not in taken else f"tag_{len(out)}"
            tag = d.pick((0, 1, 2, 3, 9, 127, 128, 300, (1 << 31) - 1))
            if name in taken or tag in [spec["tag"] for spec in out.values()]:
                continue
            out[name] = {"tag": tag} | self.type(first)
            if versions is not None:
                start = d.number(first, self.high)
                out[name]["versions"] = d.pick((f"{first}+", f"{start}+", str(start)))
        if out:
            tree["tagged"] = out
            self.columns(tree, out, versions)

    def type(self, first: int) -> Tree:
        d = self.d
        kind = d.number(0, 12)
        if kind <= 3:
            out: Tree = {"type": d.pick(("i8", "i64", "u16", "uvarint", "varlong", "i32", "u64"))}
            if d.chance(2):
                out["default"] = d.pick((0, 5, 100))
            elif out["type"] in ("i8", "i64", "varlong", "i32") and d.chance(2):
                out["absent"] = -1
            return out
        if kind == 4:
            return {"type": "bool"} | ({"default": True} if d.chance(2) else {})
        if kind == 5:
            return {"type": d.pick(("uuid", "f64", "f32"))}
        if kind == 6:
            return {
                "bits": "u8",
                "members": {"low": {"at": "0-2", "default": 3}, "high": {"at": "3-7"}},
            }
        if kind == 7:
            return {"array": d.pick(("string", "i32", "bytes", "u8", "uvarint"))}
        if kind == 8:
            same = [
                n
                for n, t in self.layouts.items()
                if first_of(t) is not None and "versions" not in t
            ]
            if same:
                name = d.pick(same)
                return d.pick(({"layout": name, "nullable": "0+"}, {"array": name}))
        if kind in (9, 10):
            return self.filled()
        out = {"type": d.pick(WORDS)}
        if d.chance(3):
            out |= {"nullable": "0+"} | ({"default": None} if d.chance(2) else {})
        return out

    def filled(self) -> Tree:
        """Fields that all have defaults, which they hold where they are left out."""
        d = self.d
        specs: list[Tree] = [
            {"type": "i16", "default": d.pick((0, 5))},
            {"type": "i32", "absent": -1},
            {"type": "bool", "default": d.chance(2)},
            {"array": d.pick(("u8", "string"))},
            {"array": "i16", "nullable": "0+"},
        ]
        fields = {f"inner_{i}": d.pick(specs) for i in range(d.number(1, 3))}
        return {"fields": fields, "default": {}} | ({"nullable": "0+"} if d.chance(2) else {})

    def columns(self, tree: Tree, tagged: Tree, versions: str | None) -> None:
        """Show some tagged fields in the views that are not written."""
        for view in self.views:
            if any("write" in rows for rows in view["rows"]) or not self.d.chance(2):
                continue
            for rows in view["rows"]:
                if rows.get("header_only"):
                    continue
                own, before = rows["of"] == tree["layout"], ""
                if "each" in rows:
                    each = rows["each"] if isinstance(rows["each"], str) else rows["each"][0]
                    element = self.layouts[rows["of"]]["fields"][each]["array"]
                    own, before = str(element).partition("@")[0] == tree["layout"], "item."
                if own and versions is None:
                    self.column(view, rows, before, tagged)

    def column(self, view: Tree, rows: Tree, before: str, tagged: Tree) -> None:
        kinds = {
            "i8": "int8",
            "i64": "int64",
            "u16": "int32",
            "uvarint": "int64",
            "i32": "int32",
            "string": "string",
            "bytes": "binary",
        }
        for name, spec in tagged.items():
            kind = kinds.get(spec.get("type", ""))
            if kind is not None and f"of_{name}" not in view["columns"] and self.d.number(0, 2):
                view["columns"][f"of_{name}"] = {"type": kind, "nullable": True}
                rows["columns"][f"of_{name}"] = f"{before}{name}"
