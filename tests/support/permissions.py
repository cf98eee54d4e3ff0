"""Tests of files that may not be read, also as root."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

VERSION_3 = 0x20080522
DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2
"""Capabilities of Linux that let root read and write whatever the modes of files say."""


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """Let the modes of files bind this thread, and those that it starts, as they bind users other than root.

    Skips the test if it runs as root on another system than Linux.
    """
    if os.name == "nt":
        pytest.skip("permissions are those of POSIX")
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root is bound by no mode here")
    before = _capabilities()
    effective = before[0] & ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    _set_capabilities([effective, *before[1:]])
    try:
        yield
    finally:
        _set_capabilities(before)


def _header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(VERSION_3, 0)


def _capabilities() -> list[int]:
    """Return effective, permitted and inheritable capabilities 0 to 31, then 32 to 63."""
    data = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capget(_header(), data):
        raise OSError(ctypes.get_errno(), "capget")
    return list(data)


def _set_capabilities(values: list[int]) -> None:
    data = (ctypes.c_uint32 * 6)(*values)
    if ctypes.CDLL(None, use_errno=True).capset(_header(), data):
        raise OSError(ctypes.get_errno(), "capset")
