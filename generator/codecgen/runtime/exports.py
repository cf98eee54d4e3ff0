"""Names that a generated package exports, each imported with its module on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from codecgen.runtime.version import version_of


def lazy_exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a generated package. They import
    ``PACKAGE._exports`` for the names on first use, then a name's module when it is asked for, and
    keep the object as an attribute of the package. ``__getattr__`` raises AttributeError for an
    unknown name, and for ``__version__`` without an installed distribution.
    """
    modules: dict[str, str] = {}

    def get(name: str) -> object:
        """Import the module that declares ``name``, and return the object; raise AttributeError for an unknown name."""
        if name == "__version__":
            return version_of(package)
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not modules:
            listed = import_module(f"{package}._exports").MODULES
            modules.update((one, home) for home, names in listed.items() for one in names.split())
        found: object
        if name == "__all__":
            found = sorted(modules)
        elif name in modules:
            found = getattr(import_module(f"{package}.{modules[name]}"), name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)
        return found

    def list_names() -> list[str]:
        """Return the names of the package, sorted."""
        names = get("__all__")
        assert isinstance(names, list)
        return sorted({*vars(sys.modules[package]), *names})

    return get, list_names


__all__ = ["lazy_exports"]
