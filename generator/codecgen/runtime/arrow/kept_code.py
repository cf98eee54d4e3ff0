"""Machine code of kernels on disk, in files that are believed only when they are whole.

numba has an index of each kernel's files, and believes all of it. A process that is killed, or two that write at once, may leave
an index that names the machine code of something else, and bytes that have changed run as they are. Here each kernel has one
file for a signature, which holds what it is the machine code of, under a digest. What is not whole is dropped and made again.
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
    """The files of one kernel in a folder. ``made_of`` is what its machine code depends on, beside the key it is asked for by:
    its source and who compiled it. ``dumps`` pickles what numba gives."""

    def __init__(
        self, folder: str, base: str, made_of: Any, dumps: Callable[[Any], bytes] = pickle.dumps
    ) -> None:
        self.folder = Path(folder)
        self.base = base
        self.made_of = made_of
        self.dumps = dumps

    def path(self, key: Any) -> Path:
        """Where the machine code for a key is: one for all bodies that a kernel may have, so that old ones are overwritten."""
        signature, target, _ = key
        name = _DIGEST(repr((signature, target)).encode()).hexdigest()[:16]
        return self.folder / f"{self.base}.{name}.nbc"

    def flush(self) -> None:
        """Drop all files of the kernel."""
        for path in self.folder.iterdir():
            if path.name.startswith(f"{self.base}.") and path.suffix == ".nbc":
                path.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        """What was saved for a key, None when it is not there. A file that is not whole is removed."""
        saved = _read(self.path(key))
        if saved is None or saved[:2] != (self.made_of, key):
            return None
        return pickle.loads(saved[2])

    def has_code(self) -> bool:
        """Return whether machine code of the kernel's current source is kept, for any arguments."""
        for path in self.folder.glob(f"{glob.escape(self.base)}.*.nbc"):
            with suppress(
                Exception
            ):  # another version of numba may have pickled what this one has not
                saved = _read(path)
                if saved is not None and saved[0] == self.made_of:
                    return True
        return False

    def save(self, key: Any, data: Any) -> None:
        """Keep what belongs to a key. Others find all of it or nothing. Raises OSError."""
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
    """Return what machine code in a file is made of, the key it was saved for, and its pickle. Return None if the file cannot be
    read, or is damaged: then it is removed."""
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


def kept(cache: Any, compiler: tuple[str, ...], dumps: Callable[[Any], bytes]) -> type:
    """A cache of numba's (a subclass of its ``FunctionCache``) with such files. What cannot be kept or found is compiled."""

    class KeptCode(cache):
        """Keeps the machine code of one kernel."""

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
