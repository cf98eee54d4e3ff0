"""Check messages: keys, versions, headers, and the fields of headers that name the message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.check.references import check_layout_known
from codecgen.diagnostics import Diagnostic, Span
from codecgen.plan import Plan, make_plan
from codecgen.plan.generated_names import MESSAGE_TABLE
from codecgen.schema.lookup import field_of, integer_range
from codecgen.schema.model import Layout, Message, Model
from codecgen.schema.types import Reference, ScalarType
from codecgen.spans import hint, place

_WRONG_KEYS = {
    "request": ("key_field", "version_field"),
    "response": ("key_field", "version_field"),
    "header": ("key", "header", "unstable", "facts"),
}


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for wrong, missing or duplicate keys of messages, versions without a
    header, references to layouts that are no headers, requests with different headers, bad header
    fields, and names that the generated message table takes. Yield nothing if no layout is a
    message. Raise ValueError if an expression is invalid, which passes before this one report.
    """
    found = [(layout, layout.message) for layout in model.layouts.values() if layout.message]
    if not found:
        return
    plan = make_plan(model)
    seen: dict[tuple[str, int], Layout] = {}
    request_headers: dict[str, Span] = {}
    for layout, message in found:
        yield from _check_keys(layout, message)
        if message.role == "header":
            yield from _check_header(layout, message, plan)
            continue
        if message.key is not None:
            other = seen.setdefault((message.role, message.key), layout)
            if other is not layout:
                text = f'"{other.name}" is the {message.role} with the key {message.key} too'
                yield _finding(text, place(message, "key"), f"it is declared at {other.span}")
        yield from _check_versions(layout, message)
        for _, ref in message.headers:
            yield from _check_reference(ref, model)
            if message.role == "request":
                request_headers.setdefault(ref.layout, ref.span)
    yield from _check_request_headers(request_headers, model)
    yield from _check_names(model)


def _finding(text: str, where: Span, help: str = "") -> Diagnostic:
    """Return a diagnostic about a message."""
    return Diagnostic("C070", text, where, help=help)


def _check_keys(layout: Layout, message: Message) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each key that the role of a message does not take, such as
    ``key_field`` of a request or ``key`` of a header, and one if a request or response has no
    ``key``.
    """
    for key in _WRONG_KEYS[message.role]:
        if key in message.places:
            text = f"a {message.role} has no `{key}`"
            yield _finding(text, place(message, key), "remove the key, or correct the role")
    if message.role != "header" and message.key is None:
        text = f'the {message.role} "{layout.name}" has no key'
        yield _finding(text, message.span, "write the number of the message: `key: 3`")


def _check_versions(layout: Layout, message: Message) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a message has no versions (and nothing more), if ``unstable`` is not
    within them, if some versions have a header and one has none, and for each header range that has
    no version of the message or overlaps an earlier range.
    """
    if layout.versions is None:
        text = f'the {message.role} "{layout.name}" has no versions'
        yield _finding(text, message.span, "give the layout `versions`")
        return
    unstable = message.unstable
    if unstable is not None and not all(
        v in layout.versions for v in (unstable.low, unstable.high) if v is not None
    ):
        text = f'"{layout.name}" has versions {layout.versions}, not {message.unstable}'
        yield _finding(text, place(message, "unstable"))
    without = [v for v in layout.all_versions() if message.header_of(v) is None]
    if message.headers and without:
        text = f'no header is given for version {without[0]} of "{layout.name}"'
        yield _finding(text, place(message, "header"), "name the header of each version")
    for index, (versions, ref) in enumerate(message.headers):
        there = [v for v in layout.all_versions() if v in versions]
        before = [part for part, _ in message.headers[:index]]
        taken = [v for v in there if any(v in part for part in before)]
        if not there:
            text = f'"{layout.name}" has versions {layout.versions}, not {versions}'
            yield _finding(text, ref.span)
        elif taken:
            what = "versions {} have" if len(taken) > 1 else "version {} has"
            listed = ", ".join(map(str, taken[:8])) + ", .." * (len(taken) > 8)
            yield _finding(f"{what.format(listed)} a header already", ref.span)


def _check_reference(ref: Reference, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a reference names no layout, or a layout that is not a header. Also
    yield one if it names a version that the header does not have, or none of a header that has
    versions.
    """
    yield from check_layout_known(ref, model)
    header = model.layouts.get(ref.layout)
    if header is None:
        return
    if header.message is None or header.message.role != "header":
        text = f'"{header.name}" is not a header'
        yield _finding(text, ref.span, f"write `message: {{role: header}}` there ({header.span})")
    if ref.version not in header.all_versions():
        text = f'"{header.name}" has versions, and nothing says which one is meant'
        if ref.version is not None:
            text = f'"{header.name}" has no version {ref.version}'
        help = f"its versions are {header.versions}" if header.versions else "it has no versions"
        yield _finding(text, ref.span, f"{help} ({header.span})")


def _check_request_headers(headers: Mapping[str, Span], model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each header after the first that requests use, and one if the first is
    a header without ``key_field``. ``headers`` maps the names of request headers to places.
    """
    for name, where in [*headers.items()][1:]:
        text = (
            f'"{name}" is a second header of requests: readers know the header before the request'
        )
        yield _finding(text, where, f"another request has the header {next(iter(headers))}")
    for name, where in [*headers.items()][:1]:
        header = model.layouts.get(name)
        message = None if header is None else header.message
        if message is not None and message.role == "header" and message.key_field is None:
            text = f'"{name}" does not say which request follows'
            yield _finding(text, where, f"give it `key_field` and `version_field` ({message.span})")


def _check_header(layout: Layout, message: Message, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a diagnostic if ``key_field`` or ``version_field`` of a header names no field, a field
    that is no integer, or one without the same type and fixed offset in all versions. Yield nothing
    for a key that is not given.
    """
    for key, name in (("key_field", message.key_field), ("version_field", message.version_field)):
        if name is None:
            continue
        where = place(message, key)
        field = field_of(layout, name)
        if field is None:
            known = hint(name, {f.name: f.span for f in layout.fields})
            yield _finding(f'"{layout.name}" has no field "{name}"', where, known)
            continue
        type_ = field.type
        if not isinstance(type_, ScalarType) or integer_range(type_.name) is None:
            yield _finding(f'"{name}" is not an integer', where, f"see {field.span}")
            continue
        places = {
            next((fp.offset for fp in one.fields if fp.name == name), None)
            for one in plan.versions[layout.name]
        }
        if len(places) > 1 or None in places or len(field.variants()) > 1:
            text = f'"{name}" does not lie at the same bytes in all versions of "{layout.name}"'
            yield _finding(text, where, f"see {field.span}")


def _check_names(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for a layout, choice or text called ``api``, and for a schema file with
    the name of the generated message table (``MESSAGE_TABLE``): generated code uses these names.
    """
    for things in (model.layouts, model.choices, model.texts):
        declared = things.get("api")
        if declared is not None:
            text = '"api" is taken: the table of the messages is called API'
            yield Diagnostic("C027", text, declared.span, help="take another name")
    for suffix in ("yaml", "yml"):
        file = f"{MESSAGE_TABLE}.{suffix}"
        if file in model.files:
            text = f'"{MESSAGE_TABLE}" is taken: a target writes a module of that name'
            yield Diagnostic("C027", text, Span(file, 1, 1, 1), help="take another name")
