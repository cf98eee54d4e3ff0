"""Numbers and bytes of logical types, which keep their unit or scale until a column holds them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_DAY_S = 86_400
_EPOCH = date(1970, 1, 1)


class LogicalNumber(int):
    """A number of a timestamp, time of day or date. ``type`` is the Arrow type that says its unit."""

    type: Any


class LogicalBytes(bytes):
    """Big-endian bytes of a decimal. ``type`` is the Arrow type that says its precision and scale."""

    type: Any


def mark_value(value: Any, kind: Any) -> Any:
    """Return a number, or bytes, that keeps ``kind``, the Arrow type of its logical type. Return
    ``value`` itself if ``kind`` is None.
    """
    if kind is None:
        return value
    marked = LogicalBytes(value) if pa.types.is_decimal(kind) else LogicalNumber(value)
    marked.type = kind
    return marked


def to_unit(value: int, kind: Any) -> int:
    """Return a timestamp or time of day as a number of ``kind``, the Arrow type of a column, rounded
    down if its unit is coarser. A number that keeps no type has the unit of the column. Raise
    ValueError for a time that is not within a day, and for a converted number of more than 64 bits.
    """
    own = getattr(value, "type", kind)
    if pa.types.is_time(own) and not 0 <= value < _DAY_S * _PER_SECOND[own.unit]:
        raise ValueError(f"the time of day {value} is not within a day")
    if own.unit == kind.unit:
        return value
    number = value * _PER_SECOND[kind.unit] // _PER_SECOND[own.unit]
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{value} {_UNITS[own.unit]} do not fit a column of {_UNITS[kind.unit]}, which has 64 bits")  # fmt: skip
    return number


def to_decimal(value: bytes, kind: Any) -> Decimal:
    """Return the decimal of big-endian bytes with a sign. Bytes that keep no type have the scale of
    ``kind``, the Arrow type of a column. Raise ValueError if it has more digits than its own
    precision.
    """
    own = getattr(value, "type", kind)
    number = int.from_bytes(value, "big", signed=True)
    if abs(number) >= 10**own.precision:
        raise ValueError(f"the decimal has more than {own.precision} digits")
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -own.scale))


def format_value(value: LogicalNumber | LogicalBytes) -> str:
    """Return a value of a logical type as text that says what it is: ISO 8601 for times, with Z if
    they are in UTC, and for dates; digits for a decimal. Times and dates before the year 1 or after
    9999 are a number with its unit. Raise ValueError for a time that is not within a day, and a
    decimal with too many digits.
    """
    kind = value.type
    if isinstance(value, bytes):
        return f"{to_decimal(value, kind):f}"
    if pa.types.is_date(kind):
        try:
            return (_EPOCH + timedelta(days=int(value))).isoformat()
        except OverflowError:
            return f"{int(value)} days since 1970"
    if pa.types.is_time(kind):
        to_unit(value, kind)
    seconds, rest = divmod(int(value), _PER_SECOND[kind.unit])
    fraction = f".{rest:0{len(str(_PER_SECOND[kind.unit])) - 1}d}"
    is_local = pa.types.is_time(kind) or kind.tz is None
    try:
        time = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        where = ", local time" if is_local else ""
        return f"{int(value)} {_UNITS[kind.unit]} since 1970{where}"
    if pa.types.is_time(kind):
        return f"{time.time().isoformat()}{fraction}"
    return f"{time.isoformat()}{fraction}{'' if is_local else 'Z'}"


def merge_types(a: Any, b: Any) -> Any:
    """Return the Arrow type that holds the values of two timestamps, times of day or decimals, each
    exactly: with the finer unit, or the digits of both. Return None if there is none, as for
    timestamps of which only one has a time zone, and for other types.
    """
    tests = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_decimal)
    if not any(test(a) and test(b) for test in tests):
        return None
    if pa.types.is_decimal(a):
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        if precision > 76:
            return None
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    if pa.types.is_timestamp(a) and a.tz != b.tz:
        return None
    return max(a, b, key=lambda kind: _PER_SECOND[kind.unit])
