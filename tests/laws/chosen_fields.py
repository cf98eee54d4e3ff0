"""Random fields and elements that are one of several layouts."""

from __future__ import annotations

from tests.laws.keys import Keys, Made, Several
from tests.laws.seen import ALL_INTEGERS, VLQS
from tests.laws.world import Tree, reach

_ODD = ("i24", "u24", "u64", "uvarlong", *VLQS)


class ChosenFields(Keys):
    """Draws choices inside the layout that is made."""

    def chosen(self, *, element: bool = False, last: bool = False) -> Tree | None:
        """One of the layouts of a choice, with the fields before it that say which; None where there is no choice."""
        d = self.d
        if not self.kit.several:
            return None
        nested = [s for s in self.kit.several if s.nested]
        several = d.pick(nested if nested and d.chance(2) else self.kit.several)
        spec: Tree = {"choice": several.name}
        if several.by is None:
            given = self.deciding(several)
            if given is None:
                return None
            spec["given"] = {"value": given}
        if several.told or (d.chance(4) and self.may_tell(several)):
            spec["version"] = self.telling()
        elif any(not self.held_here(m) for m in several.cases):
            return None
        must = any(m.open or (element and not m.solid) for m in several.cases)
        if d.chance(2) or (element and d.chance(2)) or (must and not last):
            spec["length"] = d.pick(self.integers())
            self.null(spec, spec["length"])
        if several.by is None and d.chance(2) and ("length" in spec or last):
            spec["unknown"] = "bytes"
        return spec

    def held_here(self, m: Made) -> bool:
        """Whether a layout is in one version, or in that of the layout that is made."""
        mine = self.made.versions
        if m.versions is None or m.in_band or m.versions[0] == m.versions[1]:
            return True
        return mine is not None and m.versions[0] <= mine[0] and mine[1] <= m.versions[1]

    def may_tell(self, several: Several) -> bool:
        """Whether a version can be told: none of the cases names one, and one has some."""
        return not several.pinned and any(m.versions is not None for m in several.cases)

    def deciding(self, several: Several) -> str | None:
        """A field before that says which case it is."""
        d = self.d
        own = [s for s in self.seen if s.path.endswith(".kind_of") and several.enum is None]
        if own and d.chance(2):
            return d.pick(own).path
        fit = [t for t in self.integers() if all(_in(n, t) for n in several.numbers)]
        if several.enum is not None:
            spec: Tree = {"type": d.pick(fit or ["i64"]), "enum": several.enum}
        else:
            spec = {
                "type": d.pick(
                    [t for t in self.integers() if any(_in(n, t) for n in several.numbers)]
                )
            }
        name = self.fresh()
        self.fields[name] = spec
        self.see(name, spec)
        return name

    def integers(self) -> list[str]:
        """The types of integers; those of a plain layout are the ones that kernels know."""
        return [t for t in ALL_INTEGERS if not self.plain or t not in _ODD]

    def telling(self) -> str:
        """A field before that says the version."""
        name = self.fresh()
        self.fields[name] = {"type": self.d.pick(("u8", "i16", "uvarint", "varlong"))}
        self.see(name, self.fields[name])
        return name

    def fresh(self) -> str:
        raise NotImplementedError


def _in(number: int, type_: str) -> bool:
    low, high = reach(type_)
    return low <= number <= high
