"""Check secrets: the field that names a value is text of the same layout, and name endings are lower-case."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.schema.lookup import field_of, field_spans
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import BytesType
from codecgen.spans import hint, place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each secret field whose naming field (``named_by``) is unknown or no
    text, or whose ``endings`` of secret names are missing, empty or not in lower case. Yield
    nothing for fields whose secret no other field names.
    """
    for layout in model.layouts.values():
        for f in layout.fields:
            yield from _check_naming_field(f, layout)


def _check_naming_field(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the field that names a secret (``named_by``) is unknown or no text, if
    no endings of secret names are given, or if an ending is empty or not in lower case. Yield
    nothing if no field names the secret.
    """
    secret = f.sensitive
    if secret is None or secret.named_by is None:
        return
    where = place(f, "sensitive")
    naming = field_of(layout, secret.named_by)
    if naming is None:
        message = f'"{layout.name}" has no field "{secret.named_by}"'
        help = hint(secret.named_by, field_spans(layout))
        yield Diagnostic("C014", message, where, "not a field", help)
    elif not all(isinstance(kind, BytesType) and kind.text for kind in naming.all_types()):
        message = f'"{naming.name}" names a secret, but is not text'
        yield Diagnostic("C017", message, where, help="give it the type string")
    if not secret.endings:
        message = "`endings` is empty, so nothing is a secret"
        help = "write the ends of the names, such as `endings: [password]`, or take `sensitive` out"
        yield Diagnostic("C017", message, where, help=help)
    for ending in secret.endings:
        if not ending or ending != ending.lower():
            message = f'no name ends with "{ending}": endings are compared in lower case'
            help = f'write "{ending.lower()}"'
            if not ending:
                message, help = 'every name ends with ""', "take it out of `endings`"
            yield Diagnostic("C017", message, where, help=help)
