"""The site: which page describes each declaration, and which versions of a layout look alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import PurePosixPath

from codecgen.identity_cache import cached_by_identity
from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.payloads import has_all_parts
from codecgen.plan.type_text import type_pieces
from codecgen.schema.declarations import is_used
from codecgen.schema.lookup import choice_of, enum_uses
from codecgen.schema.model import Choice, Declared, Enum, Layout, Model, UsedDirectory, View
from codecgen.schema.nested_choices import case_names
from codecgen.schema.texts import Text
from codecgen.schema.types import BitsType, FieldType, Reference, ScalarType
from codecgen.targets.docs.text import Phrase, code, link, phrase, relative, web_link


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of a plan below the directory ``root``. ``brief`` pages have no pictures and no
    examples. Links are relative to the path of the page ``page`` that shows them.

    ``pages`` has the page of each YAML file, ``homes`` the page that describes each declaration, and ``index`` is the
    page that lists the others. ``today`` is the root of the current pages, for a site as of an old release.
    """

    plan: Plan
    root: str
    brief: bool
    index_name: str
    pages: Mapping[str, str]
    homes: Mapping[str, str]
    today: str | None = None

    @property
    def index(self) -> str:
        """Return the path of the index page."""
        return f"{self.root}/{self.index_name}"

    def stem(self, path: str) -> str:
        """Return the name of a page without its suffix."""
        return PurePosixPath(path).stem

    def href(self, page: str, name: str, *parts: str) -> str:
        """Return the address of a description as seen from ``page``; ``parts`` name a field or bit in it."""
        home = self.homes[name]
        return f"{'' if home == page else relative(home, page)}#{'-'.join((name, *parts))}"

    def title(self, name: str) -> str:
        """Return a name as a title: ``record_batch`` gives ``Record batch``. A word that is a kind
        of document in the manifest's links, such as ``kip``, becomes upper case.
        """
        words = [
            w.upper() if w in self.plan.manifest.links else w for w in re.split("[_-]+", name) if w
        ]
        text = " ".join(words)
        return text[:1].upper() + text[1:]

    def link(self, page: str, name: str, label: str | None = None) -> Phrase:
        """Return ``label``, by default the name, as a link to the description of the declaration
        ``name``, as seen from ``page``. A name of another directory becomes a web link, plain text
        if its address is not ``http`` or ``https``, or code if its manifest gives no address. Raise
        KeyError for an unknown name, for views, and for texts of another directory.
        """
        label = name if label is None else label
        if not is_used(name):
            return link(label, self.href(page, name))
        address = self.address(name)
        return web_link(label, address) if address else code(label)

    def address(self, name: str) -> str:
        """Return the web address at which another schema directory describes ``name``
        (``weather.reading``), or ``""`` if its manifest gives no address. Raise KeyError if the
        alias before the last dot is unknown, or that directory has no such layout, enum or choice.
        """
        before, _, own = name.rpartition(".")
        model = self.plan.model.uses[before].model
        thing = model.layouts.get(own) or model.enums.get(own) or model.choices[own]
        file = PurePosixPath(thing.span.file).with_suffix("")
        at = model.manifest.pages_at
        return at.replace("{}", file.as_posix()) + f"#{own}" if at else ""


def make_site(
    plan: Plan,
    root: str,
    index_name: str,
    *,
    brief: bool = False,
    today: str | None = None,
    folders: Collection[str] = (),
) -> Site:
    """Return the Site of a plan: a page below ``root`` for each YAML file, with the suffix of
    ``index_name``; ``brief`` pages have no pictures and examples. On an old site, ``today`` is the
    root of the current site; if ``folders`` is not empty, files that are not directly in one of
    these folders (``.`` for the root) get no page, and links to them lead to the current site.
    Without ``today``, ``folders`` is ignored. Read and write nothing.
    """
    suffix = PurePosixPath(index_name).suffix
    pages: dict[str, str] = {}
    homes: dict[str, str] = {}
    for file, found in items_by_file(plan).items():
        schema = PurePosixPath(file)
        is_current = today is not None and folders and schema.parent.as_posix() not in folders
        page = f"{today if is_current else root}/{schema.with_suffix(suffix)}"
        if not is_current:
            pages[file] = page
        homes |= {thing.name: page for thing in found if not isinstance(thing, View)}
    return Site(plan, root, brief, index_name, pages, homes, today)


@dataclass(frozen=True, slots=True)
class Group:
    """Versions of a layout that have the same fields in the same places. ``words`` (``version 0``) and ``key``
    (``v0``) are empty when all versions are in the group.
    """

    plan: LayoutPlan
    versions: tuple[int, ...]
    words: str
    key: str

    @property
    def picture(self) -> str:
        """Name of the picture of the bytes, without an ending."""
        return f"{self.plan.name}-{self.key}" if self.key else self.plan.name


def groups(plans: tuple[LayoutPlan, ...]) -> list[Group]:
    """Return the versions of a layout as Groups of consecutive versions with equal field plans,
    oldest first, each with the plan of its newest version. With a single group, its words and key
    are empty.
    """
    alike: list[list[LayoutPlan]] = []
    for plan in plans:
        if alike and alike[-1][-1].fields == plan.fields:
            alike[-1].append(plan)
        else:
            alike.append([plan])
    out = []
    for same in alike:
        versions = tuple(p.version for p in same if p.version is not None)
        words = version_words(versions)
        key = f"v{versions[0]}" if len(alike) > 1 else ""
        out.append(Group(same[-1], versions, words.lower() if len(alike) > 1 else "", key))
    return out


def version_words(versions: tuple[int, ...]) -> str:
    """Return ``Version 0``, or ``Versions 0 to 2`` (the first and the last) for several, or ``""``
    if ``versions`` is empty.
    """
    if not versions:
        return ""
    if len(versions) == 1:
        return f"Version {versions[0]}"
    return f"Versions {versions[0]} to {versions[-1]}"


def layouts_using(plan: Plan, name: str) -> list[str]:
    """Return the sorted names of the layouts and choices, of this directory, that use the
    declaration ``name``: as a held layout, an enum of a field or bit, a choice of a field, a case,
    or the enum that selects cases. A layout that holds itself is included.
    """
    return sorted(_users(plan.model).get(name, ()))


@cached_by_identity
def _users(model: Model) -> Mapping[str, Set[str]]:
    """Return the names of the layouts and choices that use a declaration, by its name."""
    users: dict[str, set[str]] = {}

    def add(user: str, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None:
                users.setdefault(name, set()).add(user)

    for layout in model.layouts.values():
        add(layout.name, (ref.layout for ref in model.references(layout)))
        for f in layout.fields:
            add(layout.name, [f.type.enum] if isinstance(f.type, ScalarType) else [])
            add(
                layout.name,
                (m.enum for m in f.type.members) if isinstance(f.type, BitsType) else [],
            )
            add(layout.name, (c.choice for c in map(choice_of, f.variants()) if c))
    for choice in model.choices.values():
        add(choice.name, [choice.given, *case_names(choice)])
    return users


def held_layouts(plan: Plan, layout: Layout) -> list[str]:
    """Return the names of the layouts that a layout holds, in the order of its fields."""
    return list(dict.fromkeys(ref.layout for ref in plan.model.references(layout)))


def directories(plan: Plan, thing: Layout | Choice) -> dict[str, UsedDirectory]:
    """Return the other schema directories whose layouts, enums or choices ``thing`` names, by their
    alias (the part of such a name before the last dot), sorted; ``{}`` if there are none.
    """
    names: set[str | None] = set()
    if isinstance(thing, Layout):
        names = {ref.layout for ref in plan.model.references(thing)}
        names |= {enum for _, enum, _ in enum_uses(thing)}
        names |= {c.choice for f in thing.fields for c in map(choice_of, f.variants()) if c}
    else:
        names = {thing.given, *case_names(thing)}
    before = sorted({name.rpartition(".")[0] for name in names if name and is_used(name)})
    return {name: plan.model.uses[name] for name in before}


def kind(thing: Declared) -> str:
    """Return the kind of a declaration: ``"draft"`` for a layout that no release contains, otherwise
    ``"layout"``, ``"text"``, ``"enum"`` or ``"choice"``.
    """
    if isinstance(thing, Layout):
        return "draft" if thing.draft is not None else "layout"
    if isinstance(thing, Text):
        return "text"
    return "enum" if isinstance(thing, Enum) else "choice"


def type_phrase(site: Site, page: str, type_: FieldType) -> Phrase:
    """Return a field type in words, as seen from ``page``, with links to the layouts and choices in
    it.
    """
    return phrase(
        *(
            site.link(page, piece.layout, str(piece)) if isinstance(piece, Reference) else piece
            for piece in type_pieces(type_)
        )
    )


PageItem = Declared | View
"""What pages describe."""


@cached_by_identity
def items_by_file(plan: Plan) -> Mapping[str, tuple[PageItem, ...]]:
    """Return the declarations of each YAML file and the views of payloads whose parts the plan has,
    files sorted, each in the order of its file. Views of entries have no page.
    """
    out: dict[str, list[PageItem]] = {file: list(found) for file, found in plan.modules().items()}
    for view in plan.model.views.values():
        if view.parts and has_all_parts(plan, view):
            out.setdefault(view.span.file, []).append(view)
    return {
        file: tuple(sorted(out[file], key=lambda thing: (thing.span.line, thing.span.column)))
        for file in sorted(out)
    }


def anchor_of(thing: PageItem) -> str:
    """Return the anchor of a declaration; that of a view differs, as a view may share its name with another
    declaration.
    """
    return f"{thing.name}--view" if isinstance(thing, View) else thing.name
