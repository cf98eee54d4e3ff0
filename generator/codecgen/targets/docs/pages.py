"""Contents of the pages of a site: one page for every YAML file, and the index that lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codecgen.plan import Plan
from codecgen.plan.as_of import release_key
from codecgen.schema.model import Layout, View
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.targets.docs.examples import Worked, WorkedText
from codecgen.targets.docs.notes import Change, TypeRow, changes, scalar_glossary
from codecgen.targets.docs.sections import Section, section
from codecgen.targets.docs.site import PageItem, Site, anchor_of, items_by_file, kind
from codecgen.targets.docs.text import (
    Phrase,
    as_phrase,
    join,
    link,
    newest_first,
    phrase,
    relative,
    release,
)


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a YAML file. ``things`` links the declarations on it, if there are several."""

    file: str
    path: str
    title: str
    home: Phrase
    things: tuple[Phrase, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A line of an index: a link to a page, the kind of its declarations, and their description."""

    page: Phrase
    kind: Phrase
    doc: Phrase


@dataclass(frozen=True, slots=True)
class Folder:
    """The pages of one directory, for an index."""

    title: str
    rows: tuple[IndexRow, ...]


@dataclass(frozen=True, slots=True)
class ReleaseChanges:
    """The changes of a release, a line for each declaration."""

    release: Phrase
    lines: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The page that lists the others.

    Attributes:
        today: Link to the current index, from one as of an old release.
        old: Links to the indexes as of old releases.
        legend: Explain how to read the pages.
    """

    file: str
    path: str
    title: Phrase
    doc: Phrase
    today: Phrase
    folders: tuple[Folder, ...]
    legend: bool
    types: tuple[TypeRow, ...]
    timeline: tuple[ReleaseChanges, ...]
    old: tuple[Phrase, ...]


def pages(
    site: Site, worked: Mapping[str, Sequence[Worked | WorkedText]], old: Sequence[Site]
) -> tuple[Index, tuple[Page, ...]]:
    """Return the index and the pages of a site."""
    return _index(site, old), tuple(_page(site, file, worked) for file in site.pages)


def _page(site: Site, file: str, worked: Mapping[str, Sequence[Worked | WorkedText]]) -> Page:
    """Return the Page of a YAML file with a section for each declaration, and their examples from
    ``worked`` (by name). If the file has a single declaration, its name is the title; otherwise the
    title is the file's name, and the page lists links to the declarations. Raise SizeError as
    :func:`section` does.
    """
    found = items_by_file(site.plan)[file]
    path = site.pages[file]
    alone = len(found) == 1
    return Page(
        file=file,
        path=path,
        title=site.title(found[0].name if alone else site.stem(path)),
        home=_home(site, path),
        things=() if alone else tuple(_link(site, path, path, thing) for thing in found),
        sections=tuple(section(site, path, thing, worked.get(thing.name, ())) for thing in found),
    )


def _link(site: Site, page: str, home: str, thing: PageItem) -> Phrase:
    """Return the title of a declaration or view as a link, as seen from the page ``page``. ``home``
    is the page that describes ``thing``, used only for views; the pages of declarations are looked
    up by name.
    """
    if isinstance(thing, View):
        where = "" if home == page else relative(home, page)
        return link(site.title(thing.name), f"{where}#{anchor_of(thing)}")
    return site.link(page, thing.name, site.title(thing.name))


def _home(site: Site, path: str) -> Phrase:
    """Return the line under a page's title: a link to the index; on a site as of a release that has
    a current site, also the release and a link to the page in the current site.
    """
    index = link(site.plan.manifest.title, relative(site.index, path))
    if site.plan.release is None or site.today is None:
        return index
    today = path.replace(site.root, site.today, 1)
    now = link("the page as of today", relative(today, path))
    return phrase(index, ", as of ", release(site.plan, site.plan.release), " (", now, ")")


def _index(site: Site, old: Sequence[Site]) -> Index:
    """Return the Index of a site: title, description, pages by folder, on an old site a link to the
    current one, and links to the sites ``old`` of old releases. Unless the site is brief, add a
    legend, the types in use, and the changes by release.
    """
    plan = site.plan
    title = as_phrase(plan.manifest.title)
    if plan.release is not None:
        title = phrase(title, ", as of ", release(plan, plan.release))
    today = Phrase()
    if site.today is not None:
        today = link("As of today", relative(f"{site.today}/{site.index_name}", site.index))
    return Index(
        file="codecgen.yaml",
        path=site.index,
        title=title,
        doc=as_phrase(plan.manifest.doc),
        today=today,
        folders=tuple(
            Folder(folder_title(site, name), _index_rows(site, files))
            for name, files in folders(site).items()
        ),
        legend=not site.brief,
        types=() if site.brief else tuple(scalar_glossary(_types_in_use(plan))),
        timeline=() if site.brief else _timeline(site),
        old=tuple(
            link(
                release(plan, then.plan.release or "").plain,
                relative(then.index, site.index),
            )
            for then in old
        ),
    )


def _index_rows(site: Site, files: Sequence[str]) -> tuple[IndexRow, ...]:
    """Return an IndexRow for each declaration and view of the YAML files: a link, its kind, and its
    description.
    """
    modules = items_by_file(site.plan)
    return tuple(
        IndexRow(
            _link(site, site.index, site.pages[file], thing),
            as_phrase("view" if isinstance(thing, View) else kind(thing)),
            as_phrase(thing.doc),
        )
        for file in files
        for thing in modules[file]
    )


def folder_title(site: Site, folder: str) -> str:
    """Return the title of a folder, "Pages" for the root."""
    return site.title(folder) if folder else "Pages"


def folders(site: Site) -> dict[str, list[str]]:
    """Return the YAML files of a site by folder. Folders come in this order: by their oldest
    release, then by more files, then by name; folders without a release after these; folders with
    drafts only last.
    """
    out: dict[str, list[str]] = {}
    for file in site.pages:
        out.setdefault(file.rpartition("/")[0], []).append(file)
    modules = items_by_file(site.plan)

    def age(folder: str) -> tuple[bool, bool, tuple[int, ...], int, str]:
        """Return the sort key of a folder."""
        layouts = [t for file in out[folder] for t in modules[file] if isinstance(t, Layout)]
        sinces = [t.since for t in layouts] + [
            s for t in layouts for s, _ in t.version_notes.values()
        ]
        releases = [
            release_key(s.release) for s in sinces if s is not None and s.release is not None
        ]
        shipped = not layouts or any(t.draft is None for t in layouts)
        return not shipped, not releases, min(releases, default=()), -len(out[folder]), folder

    return {folder: out[folder] for folder in sorted(out, key=age)}


def _types_in_use(plan: Plan) -> set[str]:
    """Return the names of the scalar types that layouts use, also for lengths and counts, and of
    the types that their explanations refer to. Lengths of bytes that are no types, such as fixed
    sizes, are included as text.
    """
    out: set[str] = set()
    for layout in plan.model.layouts.values():
        for type_ in (t for f in layout.fields for t in f.all_types()):
            match type_:
                case ScalarType(name) | BitsType(name):
                    out.add(name)
                case BytesType(length):
                    out.add(str(length))
                case ArrayType(element, count, _, length):
                    inner = element.length if isinstance(element, BytesType | ChoiceType) else None
                    out |= {name for name in (count, length, inner) if isinstance(name, str)}
                    out |= {element.name} if isinstance(element, ScalarType) else set()
                case StructType(_, str(present)) | ChoiceType(length=str(present)):
                    out.add(present)
                case TagsType():
                    out.add("uvarint")
                case _:
                    pass
    # The words about one type lean on those about another.
    if out & {"varlong", "uvarlong", "uvarint", "compact"}:
        out.add("varint")
    out |= {name.replace("64", "32") for name in out & {"vlq64", "bijective_vlq64"}}
    return out | ({"uvarint"} if out & {"uvarlong", "compact"} else set())


def _timeline(site: Site) -> tuple[ReleaseChanges, ...]:
    """Return the releases in which declarations changed, newest first, with one line for each
    declaration, which links to it. Releases without changes are left out. Values that an enum
    gained are listed with the enum, not again with the layouts that use it.
    """
    path = site.index
    found: list[Change] = []
    for declared in site.plan.modules().values():
        for thing in declared:
            found += changes(site, path, thing, enums=False)
    out = []
    for number in newest_first(change.release for change in found):
        mine = [c for c in found if c.release == number]
        lines = []
        for name in dict.fromkeys(c.thing for c in mine):
            texts = dict.fromkeys(c.text for c in mine if c.thing == name)
            lines.append(phrase(site.link(path, name), ": ", join(texts)))
        out.append(ReleaseChanges(release(site.plan, number), tuple(lines)))
    return tuple(out)
