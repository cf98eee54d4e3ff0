"""Machine code of kernels on disk, in files that are verified before they are used.

numba keeps an index of each kernel's files, and trusts it. A process that is killed, or two that write at once, may leave an
index that names the machine code of another kernel, and changed bytes run unchecked. Here each kernel has one file for each
signature. The file says what its machine code was made from, and has a digest. A damaged file is removed and compiled again.
"""

from __future__ import annotations

import glob
import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

MAGIC = b"kept code 1\n"
_DIGEST = hashlib.sha256
_HEAD = len(MAGIC) + _DIGEST().digest_size


class KeptFiles:
    """The files with the machine code of one kernel, in one directory.

    Attributes:
        folder: The directory.
        base: Start of the names of the files.
        made_of: What the machine code depends on beside the key: source of the kernel, versions of the compiler.
        dumps: Function that pickles the objects of numba.
    """

    def __init__(
        self, folder: str, base: str, made_of: Any, dumps: Callable[[Any], bytes] = pickle.dumps
    ) -> None:
        self.folder = Path(folder)
        self.base = base
        self.made_of = made_of
        self.dumps = dumps

    def path(self, key: Any) -> Path:
        """Return the path of the file for a key. It does not depend on the body of the kernel, so that new code replaces old code."""
        signature, target, _ = key
        name = _DIGEST(repr((signature, target)).encode()).hexdigest()[:16]
        return self.folder / f"{self.base}.{name}.nbc"

    def flush(self) -> None:
        """Remove all files of the kernel."""
        for path in self.folder.iterdir():
            if path.name.startswith(f"{self.base}.") and path.suffix == ".nbc":
                path.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        """Return what was saved for a key. Return None if there is no file, or it is damaged (then
        it is removed), was made of another source or compiler, or belongs to another key. Errors of
        unpickling are let through.
        """
        saved = _read(self.path(key))
        if saved is None or saved[:2] != (self.made_of, key):
            return None
        return pickle.loads(saved[2])

    def has_code(self) -> bool:
        """Return whether a valid file has machine code of the kernel's current source and compiler,
        for any argument types. Files that cannot be read or unpickled are ignored; damaged ones are
        removed.
        """
        for path in self.folder.glob(f"{glob.escape(self.base)}.*.nbc"):
            # Unpickling fails with any error if another version of numba has saved the file.
            with suppress(Exception):
                saved = _read(path)
                if saved is not None and saved[0] == self.made_of:
                    return True
        return False

    def save(self, key: Any, data: Any) -> None:
        """Write ``data`` for a key to its file, at once: other processes see the whole file or the
        former one. Remove what killed processes left of earlier attempts. Raise OSError if the file
        cannot be written.
        """
        body = self.dumps((self.made_of, key, self.dumps(data)))
        path = self.path(key)
        new = path.with_name(f"{path.name}.{uuid4().hex[:16]}.tmp")
        try:
            with new.open("wb") as file:
                file.write(MAGIC + _DIGEST(body).digest())
                file.write(body)
            new.replace(path)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
        # What processes have left that were killed. One that is writing now has nothing to add.
        for left in self.folder.iterdir():
            if left.name.startswith(f"{path.name}.") and left.suffix == ".tmp":
                left.unlink(missing_ok=True)


def _read(path: Path) -> tuple[Any, Any, bytes] | None:
    """Return from a file what its machine code was made of, the key it was saved for, and the
    pickled code. Return None if the file cannot be read, or is damaged: then it is removed. Errors
    of unpickling are let through.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    body = data[_HEAD:]
    if data[:_HEAD] != MAGIC + _DIGEST(body).digest():
        with suppress(OSError):
            path.unlink()
        return None
    saved: tuple[Any, Any, bytes] = pickle.loads(body)
    return saved


def cached_code_class(cache: Any, compiler: tuple[str, ...], dumps: Callable[[Any], bytes]) -> type:
    """Return a subclass of numba's ``FunctionCache`` that keeps machine code in KeptFiles. It
    returns None for code that cannot be loaded, for whatever reason, so that it is compiled again,
    and ignores an OSError when it saves.

    Args:
        cache: The class ``FunctionCache``, or a subclass.
        compiler: Versions of the compiler.
        dumps: Function that pickles the objects of numba.
    """

    class KeptCode(cache):
        """Cache for the machine code of one kernel. What cannot be loaded is compiled again, what cannot be saved is not kept."""

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            made_of = compiler, self._impl.locator.get_source_stamp()
            self._cache_file = KeptFiles(self.cache_path, self._impl.filename_base, made_of, dumps)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # whatever the trouble is, it can be compiled
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(OSError):  # a full disk
                super().save_overload(sig, data)

    return KeptCode
