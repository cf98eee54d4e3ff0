"""Random texts: documents of lines, and of properties."""

from __future__ import annotations

from tests.laws.draws import Draw
from tests.laws.names import Names
from tests.laws.world import INTEGERS, Tree

SEPARATORS = (" ", ": ", "\t", ", ", "  ", " = ")
KEYS = ("a.b", "A", "x:y", "#key", "a=b", "ключ", "back\\slash")


class TextMaker:
    """Makes one text. ``releases``: whether the manifest has links."""

    def __init__(self, d: Draw, name: str, releases: bool) -> None:
        self.d = d
        self.releases = releases
        self.names = Names(d, {"unknown", "comments", "order"})
        self.tree: Tree = {"text": name}

    def document(self) -> Tree:
        d = self.d
        if d.chance(4):
            self.tree["doc"] = "Lines of text."
        if d.chance(4) and self.releases:
            self.tree["since"] = {"doc_no": 5}
        if d.chance(2):
            self.properties()
        else:
            self.lines()
        if d.chance(3):
            self.tree["examples"] = []  # filled in when the values are known
        return self.tree

    # ------------------------------------------------------------ lines

    def lines(self) -> None:
        d, lines = self.d, {}
        self.tree["lines"] = lines
        freedoms = ["other_newlines", "any_final_newline", "more_lines"]
        for _ in range(d.number(1, 4)):
            if d.chance(2):
                self.one(lines)
                continue
            counted = d.chance(2)
            each = self.names.fresh()
            if counted:
                count: Tree = {"decimal": d.pick(tuple(INTEGERS)), "counts": each}
                lines[self.names.fresh()] = count
                if d.chance(3):
                    count["accepts"] = ["ends_early"]
                if d.chance(3):
                    self.one(lines)
            lines[each] = self.each()
            if not counted:
                break
        if d.chance(4) and any("each" not in line for line in lines.values()):
            self.tree["may_be_empty"] = d.chance(2)
        if d.chance(4):
            self.tree["final_newline"] = d.chance(2)
        parts = list(lines.values())
        if any("separator" in part for part in parts):
            freedoms.append("extra_blanks")
        if any("label" in part for part in parts):
            freedoms.append("any_label")
        if any("label" in part or "'string'" in str(part) for part in parts):
            freedoms.append("invalid_utf8")
        if any("counts" in part for part in parts):
            freedoms.append("ends_early")
        self.accepts(freedoms, parts)

    def one(self, lines: Tree) -> None:
        """A line with one value."""
        d = self.d
        name = self.names.fresh()
        value = self.value(name, [n for n, v in lines.items() if "decimal" in v])
        if d.chance(3):
            value |= {"label": d.pick(("version", "Key", "a b")), "separator": d.pick(SEPARATORS)}
            if value["separator"] in value["label"]:
                del value["label"], value["separator"]
            elif d.chance(3):
                value["accepts"] = d.some(("any_label", "extra_blanks"), 1)
        if "decimal" in value and d.chance(4):
            for key in ("default", "valid", "refuse"):
                value.pop(key, None)
            value["const"] = d.pick((0, 1, 7))
        lines[name] = value

    def each(self) -> Tree:
        """Lines of several values."""
        d = self.d
        names = Names(d)
        values: Tree = {}
        for _ in range(d.number(1, 3)):
            name = names.fresh()
            before = [n for n, v in values.items() if "decimal" in v]
            values[name] = self.value(name, before, word=True)
        last = list(values.values())[-1]
        if "string" in last and d.chance(2):
            last["string"] = "rest"
        out: Tree = {"each": values}
        if len(values) > 1:
            out["separator"] = d.pick(SEPARATORS)
            if d.chance(3):
                out["accepts"] = ["extra_blanks"]
        if d.chance(4):
            out["doc"] = "Each of them."
        return out

    # ------------------------------------------------------------ properties

    def properties(self) -> None:
        d, keys = self.d, {}
        self.tree["properties"] = keys
        spelled: set[str] = set()
        for _ in range(d.number(1, 4)):
            name = self.names.fresh()
            value = self.value(name, [n for n, v in keys.items() if "decimal" in v])
            key = d.pick(KEYS) if d.chance(2) else name
            if key in spelled:
                key = name
            if key != name:
                value["spelled"] = key
            spelled.add(key)
            if d.chance(4) and self.releases:
                value["since"] = {"doc_no": 6}
            keys[name] = value
        if d.chance(2):
            self.tree["unknown"] = d.pick(("keep", "refuse"))
        freedoms = ["other_newlines", "any_final_newline", "invalid_utf8"]
        self.accepts([*freedoms, "duplicate_keys", "loose_properties"], list(keys.values()))

    # ------------------------------------------------------------ both

    def value(self, name: str, before: list[str], word: bool = False) -> Tree:
        d = self.d
        kind = d.number(0, 3)
        out: Tree
        if kind < 2:
            out = {"decimal": d.pick(tuple(INTEGERS))}
            if d.chance(3):
                out["default"] = d.pick((0, 1, 7))
            if d.chance(4):
                out["unit"] = "ms"
            if d.chance(3):
                other = d.pick([*before, "100"])
                key = d.pick(("valid", "refuse"))
                rule = f"{name} <= {other}" if d.chance(2) else f"{name} != {other}"
                if key == "refuse":
                    rule = f"{name} == {other}"
                out[key] = rule
                if "default" in out:
                    del out["default"]
        elif kind == 2:
            out = {"uuid": "base64url"}
        else:
            out = {
                "string": "word"
                if word or ("properties" not in self.tree and d.chance(2))
                else "rest"
            }
        if d.chance(4):
            out["doc"] = "A value."
        if not word and kind < 3 and d.chance(5):
            out["accepts"] = ["other_spellings"]
        return out

    def accepts(self, freedoms: list[str], parts: list[Tree]) -> None:
        values = [v for part in parts for v in part.get("each", {"": part}).values()]
        if any("decimal" in value or "uuid" in value for value in values):
            freedoms.append("other_spellings")
        if self.d.chance(2):
            self.tree["accepts"] = self.d.some(freedoms, 1)
