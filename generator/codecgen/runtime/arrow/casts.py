"""Arrow arrays made into those that a view has: types that hold the same, nothing that is broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.arrow.view import Column
from codecgen.runtime.errors import BuildError, Where

_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


_NULL = "it is null, but the column cannot be: give a value, or filter the row out"


class RowRefused(BuildError):
    """Error for a row that cannot be written.

    Attributes:
        row: Number of the row, from 0.
        column: Name of the column, None if the row as a whole is refused.
    """

    def __init__(self, reason: str, row: int, column: str | None) -> None:
        path = f"row {row}" if column is None else f"row {row}, column {column}"
        super().__init__(reason, Where(path=path))
        self.row = row
        self.column = column


def refuse_broken(batch: pa.RecordBatch, casts: Mapping[str, Any]) -> None:
    """Validate a record batch: its structure, and every byte of offsets, indices and views of the
    columns whose type differs from that in ``casts``. Raise ValueError if an array is invalid or
    has an extension type. Text is not checked for UTF-8. Return None.

    Args:
        batch: The record batch.
        casts: Arrow type to cast to, by the name of the column.
    """
    try:
        batch.validate()
        for name, wanted in casts.items():
            array = batch.column(name)
            if array.type != wanted:
                reason = explain_extension_type(array.type)
                if reason is not None:
                    raise ValueError(f"the column {name} is not written: {reason}")
                _validate(array)
    except pa.ArrowException as error:
        raise ValueError(f"the record batch is broken: {error}; make the batch again") from None


def explain_extension_type(kind: Any) -> str | None:
    """Return why values of an Arrow type are not written because it is an extension type or
    contains one, and what to do. Return None if it has none.

    The meaning of the stored values is known to the extension type alone: Kafka's serializer of
    UUIDs writes text, but the storage of ``arrow.uuid`` has 16 bytes.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return (
            f"{kind} is an extension type, and its stored values may mean something else: "
            f"cast it to {kind.storage_type} to write the stored values, or convert it"
        )
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    if pa.types.is_dictionary(kind):
        inner.append(kind.value_type)
    return next(filter(None, map(explain_extension_type, inner)), None)


def _validate(array: Any) -> None:
    """Raise pyarrow.ArrowInvalid if the offsets, indices or views of an array, or of the arrays
    inside of it, are out of bounds or not in order. Text is not checked for UTF-8: casts refuse it,
    with its row.
    """
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        like = pa.large_list if pa.types.is_large_list(kind) else pa.list_
        nothing, buffers = pa.nulls(len(array.values)), [None, array.buffers()[1]]
        pa.Array.from_buffers(
            like(pa.null()), len(array), buffers, offset=array.offset, children=[nothing]
        ).validate(full=True)
        _validate(array.values)
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _validate(array.field(i))
    elif kind in _BYTES:
        array.view(_BYTES[kind]).validate(full=True)
    elif not pa.types.is_primitive(kind):
        array.validate(full=True)


def cast_column(array: Any, column: Column, row: int) -> Any:
    """Return an array in the Arrow type of ``column``, the array itself, with its nulls, if it has
    that type; an array of the null type becomes nulls. Raise RowRefused, with the row's number
    counted from ``row``, if a value does not fit, or a list that is cast or one of its structs is
    null. Raise ValueError if the type of the array cannot be cast.

    Args:
        array: The values.
        column: The column.
        row: Number of the first row, for errors.
    """
    wanted = arrow_type(column)
    if array.type == wanted:
        return array
    if column.type == "list":
        return _cast_list(array, column, row)
    return cast_plain(array, wanted, column.name, row)


def cast_plain(array: Any, wanted: Any, name: str, row: int) -> Any:
    """Return an array that is no list cast to ``wanted`` without loss. Raise RowRefused for the
    first row whose value does not fit, with its number counted from ``row``; ValueError if the
    types cannot be cast (to bool, only bool and null can). ``name`` is the column in errors.
    """
    if wanted == pa.bool_() and not (
        pa.types.is_boolean(array.type) or pa.types.is_null(array.type)
    ):
        raise ValueError(f"the column {name} is {array.type}, not {wanted}: convert it")
    try:
        return _plainer(array, wanted)
    except pa.ArrowNotImplementedError:
        raise ValueError(f"the column {name} is {array.type}, not {wanted}: convert it") from None
    except pa.ArrowInvalid:
        low, high = 0, len(array)
        while high - low > 1:  # the first row that cannot be cast is in low..high
            middle = (low + high) // 2
            try:
                _plainer(array.slice(low, middle - low), wanted)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        try:
            return _plainer(array.slice(low, 1), wanted)
        except pa.ArrowInvalid as error:
            raise RowRefused(str(error), row + low, name) from None


def _plainer(array: Any, wanted: Any) -> Any:
    """Return an array cast without loss to the type ``wanted``; one with a dictionary is decoded
    first. Raise ArrowInvalid if a value does not fit; ArrowNotImplementedError if the types cannot
    be cast.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == wanted else pc.cast(array, wanted, safe=True)


def _cast_list(array: Any, column: Column, row: int) -> Any:
    """Return a list of structs in the type of a column. Members are matched by name, those of a map
    by position; a null type becomes all nulls. Raise RowRefused for the first null list or struct
    or value that does not fit. Raise ValueError if it is no list of structs, or members have other
    names; an empty list array passes with any elements.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), arrow_type(column))
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)):
        raise ValueError(f"the column {column.name} is {kind}, not a list of structs: convert it")
    if pa.types.is_large_list(kind):
        array = _plainer(array, pa.list_(kind.value_field))
    if not len(array):
        return pa.array([], arrow_type(column))  # producers may leave out its offsets
    first, last = _elements(array)
    structs = array.values.slice(first, last - first)
    if not pa.types.is_struct(structs.type):
        raise ValueError(f"the column {column.name} is {kind}, not a list of structs: convert it")
    names = [structs.type.field(i).name for i in range(structs.type.num_fields)]
    wanted = [m.name for m in column.members]
    if pa.types.is_map(kind) and len(wanted) == len(names):
        names = wanted
    if sorted(names) != sorted(wanted):
        have = ", ".join(names)
        raise ValueError(
            f"the structs of {column.name} have {have}, not {', '.join(wanted)}: rename or drop fields"
        )
    if structs.null_count:
        bad = first + pc.index(structs.is_null(), True).as_py()
        raise RowRefused(_NULL, row + _row_of(array, bad), column.name)
    members = []
    for m in column.members:
        member = structs.field(names.index(m.name))
        try:
            members.append(cast_plain(member, arrow_type(m), f"{column.name}.{m.name}", 0))
        except RowRefused as error:
            at = _row_of(array, first + error.row)
            raise RowRefused(error.reason, row + at, error.column) from None
    fields = [pa.field(m.name, a.type) for m, a in zip(column.members, members, strict=True)]
    inner = pa.StructArray.from_arrays(members, fields=fields)
    offsets = array.offsets.to_numpy(zero_copy_only=False) - first
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)
    if array.null_count:
        raise RowRefused(_NULL, row + pc.index(array.is_null(), True).as_py(), column.name)
    return lists


def _row_of(array: Any, element: int) -> int:
    """Return the row of a list array that has the element ``element`` of its values."""
    offsets = array.offsets.to_numpy(zero_copy_only=False)
    return max(int(np.searchsorted(offsets, element, "right")) - 1, 0)


def refuse_nulls(array: Any, column: Column, row: int) -> None:
    """Raise RowRefused for the first null in a column that is not nullable, and, in a list of
    structs, for the first null struct or null in a member that is not nullable. Rows are counted
    from ``row``. Return None if there is no such null.
    """
    if not column.nullable and array.null_count:
        first = pc.index(array.is_null(), True).as_py()
        raise RowRefused(_NULL, row + first, column.name)
    if column.type != "list":
        return
    first, last = _elements(array)
    structs = array.values.slice(first, last - first)
    parts = [("", structs)]
    parts += [
        (f".{m.name}", structs.field(i)) for i, m in enumerate(column.members) if not m.nullable
    ]
    for name, part in parts:
        if part.null_count:
            bad = first + pc.index(part.is_null(), True).as_py()
            at = row + _row_of(array, bad)
            raise RowRefused(_NULL, at, f"{column.name}{name}")


def _elements(array: Any) -> tuple[int, int]:
    """Return the range (first, end) of indexes into its values that a list array uses, which is not
    all of them if it is a slice. Return (0, 0) for an empty array.
    """
    if not len(array):
        return 0, 0
    offsets = array.offsets
    return int(offsets[0].as_py()), int(offsets[len(array)].as_py())


# ------------------------------------------------------------ addresses
