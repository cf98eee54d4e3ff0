"""Record batches in a newer version of the format: fields keep their names and values."""

from __future__ import annotations

from typing import Any

from codecgen.runtime.construct import Array, Bits, Field, Layout
from codecgen.runtime.errors import BuildError, ChecksumError
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_log.segment.versions import field_of
from kafka_log.write.rewrite.recompression import Target


def upgrade(data: bytes, magic: int, to: Target, *, file: str, position: int) -> bytes:
    """Return the batch of ``data``, which lies at a ``position`` of a ``file``, in the version of ``to``.

    Fields that only that version has get their defaults.

    Raises:
        CodecError: if the batch cannot be parsed, a checksum in it is wrong, or that version has no place for a value.
    """
    assert to.magic is not None
    session = Session(strict=False, file=file)
    older, newer = LOG_ENTRY.cases[magic], LOG_ENTRY.cases[to.magic]
    batch = older.read(Source(data, session, origin=position), None)
    for finding in session.findings:
        if isinstance(finding, ChecksumError):
            raise finding
    try:
        values = _carried(batch, older, newer)
        if to.codec is not None:
            name, _, member = field_of(to.magic, "codec").partition(".")
            if member:
                values[name][member] = to.codec
            else:
                values[name] = to.codec
        return newer.build(values, level=to.level, strict=False)
    except BuildError as error:
        raise error.located(position=position, file=file) from None


def _carried(value: Any, older: Any, newer: Any) -> Any:
    """Return a value of one codec as the other one takes it: without what builders compute.

    Raises:
        BuildError: if the other one has no place for a field that has a value.
    """
    if value is None:
        return None
    if isinstance(older, Array) and isinstance(newer, Array):
        return [_carried(one, older.element, newer.element) for one in value]
    if isinstance(older, Bits) and isinstance(newer, Bits):
        _refuse_lost({n: v for n, v in value.items() if n not in newer.by_name and v})
        return {name: value[name] for name in newer.by_name if name in value}
    if not isinstance(value, dict):
        return value
    before: Layout = older
    after: Layout = newer
    out = {}
    lost = {}
    for field in before.fields:
        target = after.by_name.get(field.name)
        if _is_computed(field) or (target is not None and _is_computed(target)):
            continue
        if target is not None:
            out[field.name] = _carried(value[field.name], field.codec, target.codec)
        elif value[field.name] not in (None, field.absent):
            lost[field.name] = value[field.name]
    _refuse_lost(lost)
    return out


def _is_computed(field: Field) -> bool:
    """Return whether builders compute the value of a field."""
    related = field.measures, field.counts, field.checksum, field.const
    return any(one is not None for one in related)


def _refuse_lost(lost: dict[str, Any]) -> None:
    for name, value in lost.items():
        raise BuildError(f"the newer version has no place for {value!r}").located(path=name)
