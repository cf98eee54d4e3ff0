"""Functions as machine code, by numba where it is there; without it, or with NUMBA_DISABLE_JIT=1, they stay plain Python.

Compiled kernels are kept on disk (see :mod:`codecgen.runtime.arrow.kept_code`). numba notices a change in the file of a kernel,
and in no other. The primitives are parts of all kernels, so a digest of their text is in the names of the files that are
kept: what was compiled with other primitives is never found.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any, TypeVar, cast

from codecgen.runtime.arrow.kept_code import KeptFiles, cached_code_class
from codecgen.runtime.arrow.memory_limit import has_room_for_kernels
from codecgen.runtime.working_directory import is_working_directory_gone

F = TypeVar("F", bound=Callable[..., Any])


def _import_numba() -> Any:
    """Import numba and return it. Raise ImportError if it is not installed.

    numba also imports coverage if that is installed, and coverage fails if the working directory
    was removed. Then coverage is hidden from numba.
    """
    is_hidden = "coverage" not in sys.modules and is_working_directory_gone()
    modules: dict[str, Any] = sys.modules
    if is_hidden:
        modules["coverage"] = None
    try:
        return importlib.import_module("numba")
    finally:
        if is_hidden:
            del modules["coverage"]


try:
    if not has_room_for_kernels():
        raise ImportError(
            "there is not enough memory to load the compiler: raise the memory limit, or read without kernels"
        )
    numba: Any = _import_numba()
    ir: Any = importlib.import_module("llvmlite.ir")
    types: Any = numba.core.types
    intrinsic: Any = importlib.import_module("numba.extending").intrinsic
    JIT = not numba.config.DISABLE_JIT
except ImportError:
    numba = ir = types = intrinsic = None
    JIT = False


def jit(function: F) -> F:
    """Compile a function with numba so that it releases the GIL, with its machine code cached on
    disk if a directory is writable. Return the function unchanged if numba is missing or disabled.
    """
    if not JIT:
        return function
    compiled = numba.njit(function, nogil=True, error_model="numpy")
    keep(compiled)
    return cast(F, compiled)


def inner(function: F) -> F:
    """Compile a function with numba that only other compiled functions may call. Return the
    function unchanged if numba is missing or disabled.
    """
    if not JIT:
        return function
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(function, error_model="numpy", **options))


def inlined(function: F) -> F:
    """Compile a function with numba that is inlined at each call in other compiled functions.
    Return the function unchanged if numba is missing or disabled.
    """
    if not JIT:
        return function
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(function, error_model="numpy", forceinline=True, **options))


def _digest() -> str | None:
    """Return a digest of the source of all primitives and of the parameters of checksums, None if only
    their bytecode is installed.
    """
    digest = hashlib.sha256()
    found = [*files(__package__).iterdir(), files("codecgen.runtime") / "checksums.py"]
    texts = [file for file in found if file.name.endswith(".py") and file.is_file()]
    for file in sorted(texts, key=lambda file: file.name):
        digest.update(f"{file.name}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16] if texts else None


if JIT:
    PRIMITIVES = _digest()
    caching: Any = importlib.import_module("numba.core.caching")
    # Without these parts of numba, which it does not promise, kernels are compiled in each process.
    _kept: Any = getattr(caching, "CompileResultCacheImpl", object)
    _cache: Any = getattr(caching, "FunctionCache", None)

    class _NamedFiles(_kept):
        """numba's locator of cache files, with names that contain the digest of the primitives."""

        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            """Return numba's start of cache file names, followed by the digest of the primitives."""
            return f"{super().get_filename_base(fullname, abiflags)}-{PRIMITIVES}"

    def keep(compiled: Any) -> None:
        """Cache the machine code of ``compiled`` on disk."""
        if PRIMITIVES is None or _kept is object or _cache is None:
            return
        try:
            compiled._cache = _kept_code()(compiled.py_func)
        except (
            RuntimeError,
            OSError,
        ):  # neither the package nor the user's cache can be written to
            return

    @cache
    def _kept_code() -> Any:
        """Return the class that caches machine code of this numba version and these primitives."""
        llvmlite = importlib.import_module("llvmlite")
        dumps = importlib.import_module("numba.core.serialize").dumps
        kind: Any = cached_code_class(_cache, (numba.__version__, llvmlite.__version__), dumps)
        kind._impl_class = _NamedFiles
        return kind


def is_compiled(function: Any) -> bool:
    """Return whether machine code of a function from :func:`jit` is loaded, or kept on disk for its
    current source, for any argument types. Return False for a plain Python function.
    """
    if not hasattr(function, "py_func"):
        return False
    files = getattr(getattr(function, "_cache", None), "_cache_file", None)
    return bool(function.signatures) or (isinstance(files, KeptFiles) and files.has_code())


def compile_ahead(module: ModuleType) -> list[str]:
    """Compile the functions of ``module`` that numba caches on disk, or load them if they are kept
    there, and return their names. Only functions are taken that ``module`` itself defines, and
    whose arguments all are annotated as int. Return ``[]`` without numba.
    """
    names = []
    if JIT:
        for name, function in vars(module).items():
            kind = getattr(function, "py_func", None)
            if (
                kind is None
                or kind.__module__ != module.__name__
                or not hasattr(function, "_cache")
            ):
                continue
            wanted = {k: v for k, v in kind.__annotations__.items() if k != "return"}
            inside = any(
                function.targetoptions.get(o) for o in ("no_cpython_wrapper", "forceinline")
            )
            if (
                inside
                or len(wanted) < kind.__code__.co_argcount
                or {*wanted.values()} - {"int", int}
            ):
                continue
            function.compile((types.int64,) * len(wanted))
            names.append(name)
    return names
