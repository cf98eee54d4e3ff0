"""Objects that generated modules declare: pickled and copied by module and name, as functions and classes are."""

from __future__ import annotations

import pickle
import sys
from typing import Any, Self

_RUNTIME = __name__.rpartition(".")[0]


class Declared:
    """An object that a generated module declares under a name.

    ``__module__`` is that module. Pickling stores the module and the name, so that a process that loads the pickle imports
    the object. Copies are the object itself.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.__module__ = _find_declaring_module()

    def __reduce__(self) -> str:
        """Return the name of the object in its module; raise ``pickle.PicklingError`` if no importable module declares
        it.
        """
        module = sys.modules.get(self.__module__)
        for name, value in vars(module).items() if module is not None else ():
            if value is self:
                return name
        raise pickle.PicklingError(
            f"{self!r} cannot be pickled: no importable module declares it. Generate a package with "
            "`codecgen generate`, and pickle the codec that the package declares"
        )

    def __reduce_ex__(self, protocol: Any) -> str:
        return self.__reduce__()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


def _find_declaring_module() -> str:
    """Return the name of the module that calls the runtime: that of the innermost stack frame
    outside of the package ``codecgen.runtime``, or of the outermost frame if there is none.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_runtime(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def _is_runtime(module: str) -> bool:
    """Return whether a module is part of the runtime."""
    return module.startswith(_RUNTIME + ".")


__all__ = ["Declared"]
