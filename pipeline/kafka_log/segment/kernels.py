"""Selection of the decoder: whether the Arrow kernels are installed and worth loading. Importing this module loads nothing."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from codecgen.runtime.located_bytes import Limits

Engine = Literal["auto", "construct", "arrow"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
"""The codecs that read: ``construct`` are the reference codecs; ``arrow`` are the kernels, with the reference codecs for entries
that the kernels reject; ``auto`` uses the kernels if that is faster."""

KERNEL_MIN_BYTES = 1 << 20
"""Minimum file size for the kernels. Loading them takes 0.5 s, in which the reference codecs decode 4 MiB of records, about
1 MiB compressed."""

KERNEL_MIN_BYTES_OF_HEADERS = 64 << 20
"""Minimum file size for the kernels if only headers are read and checksums verified, measured with batches of a few KiB."""

_NEEDED_DEPTH = 8
"""Levels of nesting that the kernels read without asking the limits."""

_PACKAGE = "kafka_codecs.arrow"
_KERNELS, _NUMPY = f"{_PACKAGE}.records_kernels", f"{_PACKAGE}.records_numpy"
_NEEDED = ("numpy", "pyarrow", _PACKAGE, _KERNELS, f"{_PACKAGE}.batches_kernels")
"""Modules that the kernels need, and the kernels themselves, which are missing if the codecs were generated without target arrow."""


def are_generated() -> bool:
    """Return whether the codecs were generated with target arrow."""
    return find_spec(_PACKAGE) is not None


class NotGeneratedError(ModuleNotFoundError):
    """The codecs were generated without target arrow."""


def load_view(name: str) -> Any:
    """Return the description of the view ``name`` for its kernels. Raise NotGeneratedError, a
    ModuleNotFoundError, if the codecs were generated without target arrow; ImportError if the view
    or pyarrow is missing.
    """
    return getattr(_load_generated(name), name.upper())


def load_writer(name: str) -> Any:
    """Return the description of how the view ``name`` is written. Raise NotGeneratedError, a
    ModuleNotFoundError, if the codecs were generated without target arrow; ImportError if the view
    is not written or pyarrow is missing.
    """
    return getattr(_load_generated(f"{name}_writer"), f"{name.upper()}_WRITER")


def _load_generated(name: str) -> Any:
    """Import and return the generated module ``name`` of target arrow. Raise NotGeneratedError, a
    ModuleNotFoundError, if the codecs were generated without that target; ImportError if there is
    no such module, or pyarrow is missing.
    """
    if not are_generated():
        raise NotGeneratedError(
            "the codecs were generated without target arrow, which writes records and is the engine arrow: "
            "run codecgen generate with --targets construct,arrow, or read with the engine construct",
            name=_PACKAGE,
        )
    return import_module(f"{_PACKAGE}.{name}")


def use_kernels(size: int, engine: str = "auto", min_bytes: int = KERNEL_MIN_BYTES) -> bool:
    """Return whether the Arrow engine (kernels, or NumPy readers without numba) is to read ``size``
    bytes. It is for the engine ``arrow``, not for ``construct`` or an unknown one; for ``auto``, if
    it is loaded already, or ``size`` is at least ``min_bytes`` and its modules are installed.
    """
    if engine != "auto":
        return engine == "arrow"
    if _NUMPY in sys.modules or getattr(sys.modules.get(_KERNELS), "JIT", False):
        return True
    return size >= min_bytes and all(find_spec(name) is not None for name in _NEEDED)


def check_engine(engine: str) -> None:
    """Raise ValueError if there is no such engine."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; known: {', '.join(ENGINES)}")


def load_decoder(name: str, engine: Engine, limits: Limits) -> ModuleType | None:
    """Return the module that decodes batches: compiled kernels, or the NumPy readers without a
    compiler. Return None for the engine ``construct``, for ``auto`` if the module cannot be
    imported, and for every engine if ``limits`` allow fewer than 8 levels of nesting. Otherwise
    raise ImportError for ``arrow`` if the module cannot be imported.
    """
    if engine == "construct" or limits.depth < _NEEDED_DEPTH:
        return None
    from codecgen.runtime.arrow.decoder import load_kernels, load_numpy_reader

    try:
        view = load_view(name)
        kernels = load_kernels(view)
        slow = engine == "auto" and not getattr(kernels, "JIT", True)  # kernels, but no compiler
        return load_numpy_reader(view) if slow else kernels
    except ImportError:
        if engine == "arrow":
            raise
        return None
