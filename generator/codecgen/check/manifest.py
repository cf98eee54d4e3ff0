"""Check the manifest: its title, its links and its keys."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from codecgen.diagnostics import Diagnostic, Span
from codecgen.schema.model import Model
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the title is empty, a link has the name of the release line, an address
    is invalid, ``at`` or ``reason`` of an accepted break is empty, or the schema directory has no
    file besides the manifest.
    """
    manifest = model.manifest
    if not manifest.title:
        yield Diagnostic("C017", "the title is empty", place(manifest, "title"))
    for name, pattern in manifest.links.items():
        where = place(manifest, f"links.{name}")
        if name == manifest.release_line:
            message = (
                f'"{name}" is the release line, so a link cannot have this name: `since` uses both'
            )
            help = f"rename the link; the release line is at {place(manifest, 'release_line')}"
            yield Diagnostic("C011", message, where, help=help)
        yield from _check_address(f'a link to "{name}"', pattern, "the number", where)
    if manifest.pages_at:
        where = place(manifest, "documents.at")
        yield from _check_address("the address of pages", manifest.pages_at, "the file", where)
    for accepted in manifest.accepted_breaks:
        for key in ("at", "reason"):
            if not getattr(accepted, key):
                message = f"the `{key}` of an accepted break is empty"
                yield Diagnostic("C017", message, accepted.span, help=f"write a text: `{key}: ..`")
    if len(model.files) == 1:
        message = "the schema directory declares nothing"
        help = "add a file with a `layout`"
        yield Diagnostic("C025", message, manifest.span, help=help)


def _check_address(what: str, pattern: str, part: str, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless ``pattern`` begins with ``https://`` or ``http://``, has ``{}``
    exactly once and no other ``{``, has no character that an address cannot have, and has a host.
    ``what`` and ``part`` name the address and what ``{}`` stands for in messages.
    """
    if not pattern.startswith(("https://", "http://")):
        yield Diagnostic("C017", f"{what} must begin with https:// or http://", where)
    elif (
        pattern.count("{}") != 1
        or "{" in pattern.replace("{}", "")
        or any(map(_is_unsafe, pattern))
    ):
        message = f"{what} must have {{}} once, in the place of {part}, and no blanks, quotes, <, > or other {{"
        help = f"write {{}} for {part}, such as https://example.org/{{}}"
        yield Diagnostic("C017", message, where, help=help)
    elif not _has_host(pattern):
        message = f"{what} has no valid host"
        help = "write the name of a host after //, such as https://example.org/{}"
        yield Diagnostic("C017", message, where, help=help)


def _has_host(pattern: str) -> bool:
    """Return whether an address can be split into its parts, and has a host without ``{}``."""
    try:
        host = urlsplit(pattern).hostname
    except ValueError:
        return False
    return host is not None and "{}" not in host


def _is_unsafe(character: str) -> bool:
    """Return whether an address cannot contain a character."""
    return character.isspace() or character in "<>\"'`\\"
