"""Names that are chosen to collide with what generators, Python, numba and NumPy call things."""

from __future__ import annotations

from codecgen.check.names import CONTAINER, EXPRESSION, HELPERS
from tests.laws.draws import Draw

_STEMS = ("x", "y", "n", "p", "row", "out", "end", "state", "start", "size", "count")
_SUFFIXES = ("at", "end", "before", "null", "size", "count", "start", "length", "bytes", "line")
_OF_GENERATORS = [
    "rows",
    "first_x",
    "last_x",
    "entry_x",
    "item_x",
    "part_x",
    "head_x",
    "least_x",
    "most_x",
    "run_x",
    "max_x",
    "place_of_x",
    "start_of_x",
    "end_of_x",
    "entry",
    "part",
    "head",
    "least",
    "most",
    "line",
    "lines",
    "run",
    "runs",
    "taken",
    "sizes",
    "size_of",
    "blamed",
    "bias",
    "room",
    "table",
    "table_row",
    "status",
    "index",
    "where",
    "done",
    "kind",
    "case",
    "codec",
    "level",
    "limit",
    "memory",
    "fields",
    "places",
    "each",
    "edges",
    "walk",
    "window",
    "windows",
    "bytes_left",
    "shortest",
    "value",
    "number",
    "data",
    "text",
    "record",
    "layout",
    "choice",
    "integer",
    "varint",
    "rule",
    "lazy",
    "boolean",
    "float32",
    "float64",
    "compressed",
    "array",
    "bits",
    "bit",
    "field",
    "enumeration",
    "container",
    "here",
]
_OF_PYTHON = [
    "class_",
    "from_",
    "lambda_",
    "def_",
    "return_",
    "none_",
    "async_",
    "global_",
    "is_",
    "in_",
    "for_",
    "len",
    "range",
    "print",
    "list_",
    "dict_",
    "set_",
    "type_",
    "id",
    "hash",
    "min",
    "max",
    "sum",
    "abs",
    "any",
    "all",
    "object",
    "self",
    "cls",
    "this",
    "super",
    "property",
    "map",
    "filter",
    "iter",
    "next",
    "slice",
    "tuple",
    "isinstance",
    "getattr",
    "main",
    "init",
]
_OF_LIBRARIES = [
    "np",
    "numpy",
    "numba",
    "njit",
    "jit",
    "inner",
    "ctypes",
    "struct",
    "struct_",
    "construct",
    "pa",
    "pyarrow",
    "types",
    "ir",
    "source",
    "session",
    "stream",
    "context",
    "parse",
    "build",
    "sizeof",
    "read",
    "write",
    "load_u8",
    "load_i16",
    "load_i32_le",
    "load_i64",
    "store_8",
    "store_64_be",
    "wrap_32",
    "wrap_64",
    "fail",
    "copy_from",
    "crc32c",
    "crc32",
    "fetch_around",
    "uvarint",
    "varlong",
    "compact",
    "utf8",
    "bit_length",
    "fill_8",
    "position",
    "version",
    "true_",
    "math",
    "zlib",
    "uuid",
    "reduce",
    "vector",
]
POOL = tuple(
    dict.fromkeys(
        ["a", "b", "c", "d", "e", *_STEMS]
        + [f"{stem}_{suffix}" for stem in _STEMS[:6] for suffix in _SUFFIXES]
        + [*_OF_GENERATORS, *_OF_PYTHON, *_OF_LIBRARIES]
        + [f"{word}_" for word in sorted(CONTAINER | EXPRESSION | HELPERS)]
    )
)
PLAIN = tuple(f"{a}{b}" for a in "abcdefghjkmqrstuvw" for b in ("", "1", "2", "3"))
"""Names that collide with nothing: the next ones when a name of the pool is taken already."""

TAKEN = CONTAINER | EXPRESSION
_OF_WRITERS = ("entry", "item", "part", "head", "row", "most", "least", "first", "last", "run")
_NO_COLUMNS = ("entry_", "item_", "part_")


class Names:
    """Names for the things of one scope, each of them once."""

    def __init__(self, d: Draw, taken: set[str] | None = None) -> None:
        self.d = d
        self.taken = set(taken or ())

    def fresh(self, near: str | None = None) -> str:
        """A name: one of the pool, or one that looks like another of the same scope (``near``)."""
        d = self.d
        if near is not None and d.chance(3):
            name = f"{near}_{d.pick(_SUFFIXES)}"
        else:
            kind = d.number(0, 2)
            name = d.pick(PLAIN) if kind == 0 else d.pick(POOL)
        return self.keep(name)

    def keep(self, name: str) -> str:
        """The name, or another one if it is taken."""
        tries = iter(PLAIN)
        while name in self.taken or name in TAKEN or len(name) > 60:
            name = next(tries)
        self.taken.add(name)
        return name


def column_allowed(name: str, written: bool) -> bool:
    """Whether a column may have a name; fewer are there for views that are written."""
    if name.startswith(_NO_COLUMNS):
        return False
    own = (*(f"{word}_" for word in _OF_WRITERS), "place_of_", "start_of_", "end_of_")
    return not written or not (name in _OF_WRITERS or name.startswith(own))
