"""Compare what layouts are in a protocol of requests and responses, in two states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codecgen.evolution.changes import Change
from codecgen.schema.model import Layout, Message

_RULE = "B027"


def compare_messages(old: Layout, new: Layout, versions: Iterable[int]) -> Iterator[Change]:
    """Yield a breaking change if a message gets another role or key, a header finds them in other
    fields, one of ``versions`` (which both have) gets another header and was not unstable, or the
    layout is no message any more. A new message is a change of names; other facts are
    documentation. Yield nothing if neither layout is a message.
    """
    before, after = old.message, new.message
    if before is None or after is None:
        if before is not None:
            change = f"is not {_describe(before)} any more"
            yield Change("bytes", new.name, change, _RULE, span=new.span)
        elif after is not None:
            yield Change("names", new.name, f"is {_describe(after)}", span=after.span)
        return
    if _describe(before) != _describe(after):
        change = f"{_describe(before)} becomes {_describe(after)}"
        yield Change("bytes", new.name, change, _RULE, span=after.span)
    for version in versions:
        if before.unstable is not None and version in before.unstable:
            continue
        headers = before.header_of(version), after.header_of(version)
        if str(headers[0]) != str(headers[1]):
            names = [str(header) if header else "no header" for header in headers]
            change = f"the header {names[0]} becomes {names[1]}"
            span = after.places.get("header", after.span)
            yield Change("bytes", new.name, change, _RULE, versions=(version,), span=span)
    for key in ("unstable", "facts"):
        if getattr(before, key) != getattr(after, key):
            span = after.places.get(key, after.span)
            yield Change("documentation", f"{new.name}.{key}", "differs", span=span)


def _describe(message: Message) -> str:
    """Return what a layout is in the protocol, in words: ``a request with the key 3``, or ``a
    header`` with the fields that hold key and version.
    """
    words = f"a {message.role}"
    if message.key is not None:
        words += f" with the key {message.key}"
    fields = {"key": message.key_field, "version": message.version_field}
    stated = [f"the {what} in {field}" for what, field in fields.items() if field is not None]
    return f"{words} with {' and '.join(stated)}" if stated else words
