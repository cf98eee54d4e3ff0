"""Check releases: the manifest lists them, and nothing ends before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from codecgen.diagnostics import Diagnostic, Span, did_you_mean
from codecgen.plan.as_of import inherit_since, release_key
from codecgen.schema.declarations import is_used
from codecgen.schema.lookup import choice_of, covered_parts, field_of, references_of
from codecgen.schema.model import Choice, Declared, Field, Layout, Manifest, Model
from codecgen.schema.types import BitsType, Formerly, Misprint, Reference, Since
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each release that the manifest does not list, releases that are out of
    order, parts older than their whole, drafts with a release, holders older than what they hold,
    and folders of ``as_of_folders`` without a schema.
    """
    manifest = model.manifest
    yield from _check_order(manifest)
    for i, release in enumerate(manifest.as_of):
        where = manifest.places.get(f"documents.as_of.{i}", place(manifest, "documents"))
        yield from _check_known(release, where, manifest)
    yield from _as_of_folders(model)
    for layout in model.layouts.values():
        yield from _check_layout(layout, model)
    for choice in model.choices.values():
        yield from _check_since(choice.since, place(choice, "since"), manifest)
    for text in model.texts.values():
        yield from _check_since(text.since, place(text, "since"), manifest)
        for key in text.properties:
            where = place(key, "since")
            yield from _check_since(key.since, where, manifest)
            yield from _check_not_older(key.since, text.since, f"{text.name} itself", where)
        for example in text.examples:
            yield from _check_since(example.since, place(example, "since"), manifest)
    for enum in model.enums.values():
        for value in enum.values:
            yield from _check_since(value.since, place(value, "since"), manifest)


def _as_of_folders(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each folder of ``as_of_folders`` in which no file declares a layout,
    enum, choice or text. Subfolders do not count; ``.`` is always accepted.
    """
    manifest = model.manifest
    declared: list[Declared] = [*model.layouts.values(), *model.enums.values()]
    declared += [*model.choices.values(), *model.texts.values()]
    folders = {"."} | {PurePosixPath(thing.span.file).parent.as_posix() for thing in declared}
    for i, folder in enumerate(manifest.as_of_folders):
        if folder not in folders:
            where = manifest.places.get(
                f"documents.as_of_folders.{i}", place(manifest, "documents")
            )
            message = f"no schema lies in a folder {folder!r}"
            missing = folders - set(manifest.as_of_folders)
            help = did_you_mean(folder, missing) or "take it out"
            if missing and help == "take it out":
                help = f"take it out, or name a folder with schemas: {', '.join(sorted(missing))}"
            yield Diagnostic("C018", message, where, "no such folder", help)


def _check_order(manifest: Manifest) -> Iterator[Diagnostic]:
    """Yield a diagnostic if releases are listed without a ``release_line``, and one for each
    release that is not newer than the one before it.
    """
    if manifest.releases and manifest.release_line is None:
        message = "releases need a `release_line`: the key under `since` that names a release"
        newest = manifest.releases[-1]
        help = (
            f"write `release_line: NAME`; `since: {{NAME: {newest}}}` then names release {newest}"
        )
        yield Diagnostic("C005", message, place(manifest, "releases"), help=help)
    for i, (before, after) in enumerate(
        zip(manifest.releases, manifest.releases[1:], strict=False)
    ):
        if release_key(before) >= release_key(after):
            message = f"{after} stands after {before}: releases go from the oldest to the newest"
            where = manifest.places.get(f"releases.{i + 1}", place(manifest, "releases"))
            help = f"take {after} out" if release_key(before) == release_key(after) else ""
            help = help or f"move {after} in front of the releases that are newer"
            yield Diagnostic("C028", message, where, help=help)


def is_known_release(release: str, manifest: Manifest) -> bool:
    """Return whether the manifest lists a release. ``2.1`` and ``2.1.0`` are equal."""
    return release_key(release) in {release_key(r) for r in manifest.releases}


def _check_known(release: str | None, where: Span, manifest: Manifest) -> Iterator[Diagnostic]:
    """Yield a diagnostic at ``where`` unless ``release`` is None or the manifest lists it. Its help
    names the closest release, if one is close, and says where to add this one.
    """
    if release is None or is_known_release(release, manifest):
        return
    guess = did_you_mean(release, manifest.releases)
    add = f"add {release} to `releases` ({place(manifest, 'releases')})"
    help = f"{guess} If not, {add}" if guess else add
    message = f"the manifest does not list the release {release}"
    yield Diagnostic("C018", message, where, "not listed", help)


def _check_since(since: Since | None, where: Span, manifest: Manifest) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless the manifest lists the release of a ``since``; nothing if ``since``
    or its release is None. ``where`` is the place of a ``since`` without its own.
    """
    if since is not None:
        yield from _check_known(since.release, since.span or where, manifest)


def _check_layout(layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each release in a layout that is unknown, earlier than that of the
    whole it belongs to, or wrongly ordered; if a draft has ``since``; and if a field holds or
    measures something newer than itself.
    """
    manifest = model.manifest
    yield from _check_since(layout.since, place(layout, "since"), manifest)
    yield from _check_since(layout.draft, place(layout, "draft"), manifest)
    if layout.draft is not None and layout.since is not None:
        message = "no release contains a draft: it has no release from which it exists"
        yield Diagnostic(
            "C011", message, place(layout, "since"), help="take out `since` or `draft`"
        )
    for version, (since, until) in layout.version_notes.items():
        where = layout.places.get(f"version_notes.{version}", layout.span)
        yield from _check_since(since, where, manifest)
        yield from _check_since(until, where, manifest)
        first, last = (since and since.release), (until and until.release)
        if first and last and release_key(first) >= release_key(last):
            message = f"version {version} ends in {last}, before it begins in {first}"
            help = "write a later release under `until`, or an earlier one under `since`"
            yield Diagnostic("C028", message, where, help=help)
    for f in layout.fields:
        yield from _check_since(f.since, place(f, "since"), manifest)
        yield from _check_not_older(
            f.since, layout.since, f"{layout.name} itself", place(f, "since")
        )
        yield from _check_former_name(f, f.formerly, layout, manifest)
        yield from _check_misprint(f.misprint, place(f, "documentation.misprint.until"), manifest)
        yield from _check_held(f, layout, model)
        yield from _check_range_ends(f, layout)
        if isinstance(f.type, BitsType):
            for m in f.type.members:
                where = place(m, "since")
                yield from _check_since(m.since, where, manifest)
                yield from _check_not_older(
                    m.since, inherit_since(f.since, layout.since), f.name, where
                )
                yield from _check_misprint(
                    m.misprint, place(m, "documentation.misprint.until"), manifest
                )
    for d in layout.derived:
        yield from _check_since(d.since, place(d, "since"), manifest)
        yield from _check_not_older(
            d.since, layout.since, f"{layout.name} itself", place(d, "since")
        )
    for rule in layout.rules:
        yield from _check_since(rule.since, place(rule, "since"), manifest)
        yield from _check_not_older(
            rule.since, layout.since, f"{layout.name} itself", place(rule, "since")
        )
    for e in layout.examples:
        yield from _check_since(e.since, e.span, manifest)


def _check_not_older(
    inner: Since | None, outer: Since | None, what: str, where: Span
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the release of ``inner`` is before that of ``outer``. Yield nothing if
    either has no release. ``what`` names the whole in messages; ``where`` is the place of an
    ``inner`` without its own.
    """
    if inner is None or outer is None or inner.release is None or outer.release is None:
        return
    if release_key(inner.release) < release_key(outer.release):
        message = f"{inner.release} is before {outer.release}, the first release with {what}"
        help = f"write {outer.release} or a later release, or correct `since` of {what}"
        yield Diagnostic("C028", message, inner.span or where, help=help)


def _check_former_name(
    f: Field, formerly: Formerly | None, layout: Layout, manifest: Manifest
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``formerly.until`` is a release that the manifest does not list, or not
    later than the first release of the field. Yield nothing if ``formerly`` is None.
    """
    if formerly is None:
        return
    where = place(f, "documentation.formerly.until")
    yield from _check_known(formerly.until, where, manifest)
    since = inherit_since(f.since, layout.since)
    first = since.release if since is not None else None
    if first is not None and release_key(formerly.until) <= release_key(first):
        message = f'"{f.name}" exists since {first}, so it had no other name until {formerly.until}'
        help = f"write a release after {first}: the first one with the new name"
        yield Diagnostic("C028", message, where, help=help)


def _check_misprint(
    misprint: Misprint | None, where: Span, manifest: Manifest
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the release until which a misprint lasts is not listed in the manifest.
    Yield nothing if ``misprint`` is None.
    """
    if misprint is not None:
        yield from _check_known(misprint.until, where, manifest)


def _check_range_ends(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each field that a length or checksum range begins or ends with, or
    that a count counts, if it exists since a later release than the length, checksum or count. A
    length, checksum or count without a release exists since the first one; a range end without a
    release is skipped.
    """
    own = inherit_since(f.since, layout.since)
    first = own.release if own is not None else None
    ends = [] if f.measures is None else [("measures", f.measures)]
    ends += covered_parts(f)
    names = [(f"{key}.from", field_range.first) for key, field_range in ends]
    names += [
        (f"{key}.to", field_range.last) for key, field_range in ends if field_range.last is not None
    ]
    names += [("counts", array) for array in f.counts]
    for key, name in names:
        end = field_of(layout, name)
        since = end.since.release if end is not None and end.since is not None else None
        if since is not None and (first is None or release_key(since) > release_key(first)):
            begin = "the first release" if first is None else first
            message = (
                f'"{f.name}" exists since {begin}, but uses "{name}", which exists since {since}'
            )
            help = f"correct one of the two `since`; see {place(end, 'since') if end else f.span}"
            yield Diagnostic("C028", message, place(f, key), help=help)


def _check_held(f: Field, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a field of a layout that is no draft holds a draft, or a layout or
    choice newer than the field. For a choice the choice's own release counts. What has no release
    is not compared. Declarations of used directories are not checked.
    """
    used = choice_of(f)
    if used is None:
        for ref in references_of(f):
            yield from _check_held_layout(ref, f, layout, model)
    elif used.choice in model.choices and not is_used(used.choice) and layout.draft is None:
        # Which of its layouts are cases goes by what is there.
        yield from _check_held_since(model.choices[used.choice], used.span, f, layout)


def _check_held_layout(
    ref: Reference, f: Field, layout: Layout, model: Model
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the layout ``ref`` is a draft or newer than the field ``f`` that holds
    it. Yield nothing if the holder ``layout`` is a draft, or if ``ref`` is unknown or of a used
    directory.
    """
    held = model.layouts.get(ref.layout)
    if held is None or layout.draft is not None or is_used(ref.layout):
        return
    if held.draft is not None:
        message = f'"{held.name}" is a draft, which no release contains, but "{layout.name}" is not a draft'
        yield Diagnostic("C028", message, ref.span, help=f"see {place(held, 'draft')}")
        return
    yield from _check_held_since(held, ref.span, f, layout)


def _check_held_since(
    held: Layout | Choice, where: Span, f: Field, layout: Layout
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``held`` exists since a later release than the field (or, without
    ``since``, its layout). Yield nothing if either has no release. Versions are not compared.
    """
    since = inherit_since(f.since, layout.since)
    if since is not None and since.release is not None:
        newer = held.since.release if held.since is not None else None
        if newer is not None and release_key(newer) > release_key(since.release):
            message = f'"{f.name}" exists since {since.release}, but holds "{held.name}", which exists since {newer}'
            yield Diagnostic("C028", message, where, help=f"see {place(held, 'since')}")
