"""The table of a protocol's messages, as a module of the generated package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.plan import Plan
from codecgen.plan.generated_names import MESSAGE_TABLE
from codecgen.schema.model import Layout, Message
from codecgen.schema.types import Versions
from codecgen.targets.construct.homes import Home, symbol
from codecgen.targets.python_source import (
    Call,
    Code,
    assign,
    call,
    docstring,
    listing,
    mapping,
    string,
)

_RUNTIME = "codecgen.runtime.messages"


def exported_names(plan: Plan) -> tuple[str, ...]:
    """Return the names that the module of the message table declares: ``API``, ``parse_request`` if
    a request names a header, and ``parse_response`` if there are responses. Return ``()`` if the
    directory has no requests and no responses.
    """
    roles = {message.role for _, message in _messages(plan)} - {"header"}
    names = {"request": "parse_request", "response": "parse_response"}
    if _request_header(plan) is None:
        names.pop("request")
    return ("API", *(name for role, name in names.items() if role in roles)) if roles else ()


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """Return the module with the message table and its stub, by path; ``{}`` if the directory has
    no requests and no responses. ``homes`` has the module of each layout; ``mark`` begins the note
    in the docstring that the file is generated.
    """
    names = exported_names(plan)
    if not names:
        return {}
    sides: dict[str, list[tuple[str, Code]]] = {"request": [], "response": []}
    for layout, message in sorted(_messages(plan), key=lambda one: one[1].key or 0):
        if message.role != "header":
            sides[message.role].append((str(message.key), _message(layout, message, plan, homes)))
    header = _request_header(plan)
    table = call(
        "MessageTable",
        requests=mapping(sides["request"]),
        responses=mapping(sides["response"]),
        key_field=None if header is None else string(header.key_field or ""),
        version_field=None if header is None else string(header.version_field or ""),
    )
    text = assign("API", table)
    used = [name for name in ("Header", "MessageVersions") if f"{name}(" in text]
    head = docstring(f"{plan.manifest.title}: messages.", f"{mark} YAML; do not edit.")
    functions = [name for name in names if name != "API"]
    imports = f"from {_RUNTIME} import {', '.join(sorted((*used, 'MessageTable')))}"
    body = [text, *(f"{name} = API.{name}" for name in functions)]
    module = "\n\n".join([head, "from __future__ import annotations", imports, "\n".join(body)])
    stub = [head, "", f"from {_RUNTIME} import MessageTable", "", "API: MessageTable"]
    stub += [*(f"{name} = API.{name}" for name in functions), ""]
    stub += ["__made_for__: dict[str, object]"]
    path = f"{plan.manifest.package}/{MESSAGE_TABLE}"
    return {f"{path}.py": module + "\n", f"{path}.pyi": "\n".join(stub) + "\n"}


def _messages(plan: Plan) -> Iterator[tuple[Layout, Message]]:
    """Yield the layouts of a plan that are messages or headers."""
    for layout in plan.model.layouts.values():
        if layout.message is not None:
            yield layout, layout.message


def _request_header(plan: Plan) -> Message | None:
    """Return the ``message`` declaration of the first header layout, in the plan, that a request
    names; None if no request names one, or if that layout declares no ``message``.
    """
    for _, message in _messages(plan):
        for _, ref in message.headers if message.role == "request" else ():
            header = plan.model.layouts.get(ref.layout)
            if header is not None:
                return header.message
    return None


def _message(layout: Layout, message: Message, plan: Plan, homes: Mapping[str, Home]) -> Call:
    """Return the ``MessageVersions`` call for a request or response: the module and constant of its
    codec, and the range of its versions, then its headers, its unstable versions (to the last
    version if open) and its other facts, each if declared. Raise IndexError for a message without
    versions, which the checks exclude.
    """
    versions = [v for v in layout.all_versions() if v is not None]
    facts: list[tuple[str, Code]] = [
        (string(name), listing([string(word) for word in words]))
        for name, words in message.facts.items()
    ]
    return call(
        "MessageVersions",
        string(".".join(homes[layout.name])),
        string(symbol(layout.name)),
        _range(Versions(versions[0], versions[-1])),
        headers=listing(list(_headers(message, versions, plan, homes)))
        if message.headers
        else None,
        unstable=None if message.unstable is None else _range(message.unstable, versions[-1]),
        facts=mapping(facts) if facts else None,
    )


def _headers(
    message: Message, versions: list[int], plan: Plan, homes: Mapping[str, Home]
) -> Iterator[Code]:
    """Yield the code of a ``Header`` call for each header that a message declares: the first and
    last of the ``versions`` that have it, its module, and the constant of its codec. Skip headers
    for other versions only, and header layouts that the plan lacks.
    """
    for part, ref in message.headers:
        there = [v for v in versions if v in part]
        if there and ref.layout in plan.model.layouts:
            yield call(
                "Header",
                str(there[0]),
                str(there[-1]),
                string(".".join(homes[ref.layout])),
                string(symbol(ref.layout, ref.version)),
            )


def _range(versions: Versions, last: int | None = None) -> str:
    """Return ``versions`` as the code ``range(low, high + 1)``. An open range ends with ``last``,
    included; raise AssertionError if that is None.
    """
    high = versions.high if versions.high is not None else last
    assert high is not None
    return f"range({versions.low}, {high + 1})"
