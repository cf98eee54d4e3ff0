"""Words that other languages have for what this one says: what to write instead. None of them is accepted."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_INTEGER = re.compile(r"(u?)(?:int|sint|integer|long|short)?(8|16|32|64)(?:_t)?(?:[lb]e)?\Z")
_C_TYPES: Mapping[str, tuple[str, ...]] = {
    "byte": ("i8", "u8"),
    "char": ("i8", "u8"),
    "sbyte": ("i8",),
    "ubyte": ("u8",),
    "short": ("i16",),
    "ushort": ("u16",),
    "word": ("u16",),
    "int": ("i32",),
    "integer": ("i32",),
    "uint": ("u32",),
    "dword": ("u32",),
    "long": ("i64",),
    "ulong": ("u64",),
    "qword": ("u64",),
    "half": ("f16",),
    "float": ("f32",),
    "single": ("f32",),
    "float32": ("f32",),
    "double": ("f64",),
    "float64": ("f64",),
    "boolean": ("bool",),
    "guid": ("uuid",),
    "varint32": ("varint",),
    "varint64": ("varlong",),
    "sint32": ("varint",),
    "sint64": ("varlong",),
    "uvarint32": ("uvarint",),
    "uvarint64": ("uvarlong",),
    "unsigned_varint": ("uvarint",),
    "leb128": ("uvarint", "uvarlong"),
    "uleb128": ("uvarint", "uvarlong"),
    "vlq": ("vlq32", "vlq64"),
    "s1": ("i8",),
    "s2": ("i16",),
    "s4": ("i32",),
    "s8": ("i64",),
    "u1": ("u8",),
    "u2": ("u16",),
    "u4": ("u32",),
}
TEXTS = ("string", "str", "text", "utf8", "varchar")
_ENDED = ("strz", "stringz", "cstring", "c_string", "asciiz", "zstring", "null_terminated")
BYTES = ("bytes", "blob", "binary", "buffer", "bytearray")
_SIZE = "write the length after the type, `bytes: 16` or `string: u8`; a field that holds a length has `measures`"
_WHOLE_SIZE = "remove it: the fields give the size, or a field with `measures: rest`"
_IN_ORDER = "each field begins where the field before it ends; a program must parse what lies at another position itself"
_BIT_LENGTH = "only a whole field measures or counts: declare whole bytes of a length as one, such as `u24`; give a number in bits to a layout, `given: {n: head.size}`, for `count: n` or `bytes: n`"
_TEST_OF_BIT = "name the bits: `flags: {bits: u8, members: {is_new: {at: 0}, unused: {reserved: keep}}}`; then write `when: flags.is_new`"
_KEYS: Mapping[str, str] = {
    "name": "remove it: a field is named by the key before the colon, a document by its first value",
    "id": "remove it: a field is named by the key before the colon, a document by its first value",
    "size": _SIZE,
    "len": _SIZE,
    **dict.fromkeys(("at", "offset", "position", "pos", "seek", "jump"), _IN_ORDER),
    "description": "doc",
    "comment": "doc",
    "docs": "doc",
    "if": "when",
    "condition": "when",
    "optional": "when",
    "fixed": "const",
    "value": "const",
    "constant": "const",
    "sentinel": "none",
    "refuses": "except",
    "excludes": "except",
    "is": "values",
    "of": "columns",
    "version_is": "the field that holds the version says `is: version`",
    "repeat": "array",
    "list": "array",
    "elements": "array",
    "struct": "layout",
    "ref": "layout",
    "flags": "bits",
    "assert": "valid",
    "check": "valid",
    "range": "valid",
    "units": "unit",
    "version": "versions",
    "introduced": "since",
    "byte_order": "endian",
    "endianness": "endian",
    "seq": "fields",
    "terminator": "bytes and text that a zero byte ends are `zero_terminated`",
    "align": "`{padding: 8}` is a field of zero bytes up to a multiple of 8",
    "pad": "`{padding: 8}` is a field of zero bytes up to a multiple of 8; `padded: true` is text that zeros fill up",
    "repeat_until": "until",
    "message": "layout",
    "type": "layout",
}
_SWITCH = ("switch", "switch_on", "switch-on", "select", "union", "variant", "discriminator")
_CHOSEN = "write `choice: NAME` and `given: FIELD`; the choice is a document with its `cases`"
_EARLIER: Mapping[str, tuple[str, str]] = {
    "absent": ("none", "write `none: -1`: the number that stands for no value"),
    "null": ("none", "write `none: -1`: the length, count or number that stands for no value"),
    "nullable": ("none", "write `none: true`, or `none: {2+: true}`, in a flexible layout"),
    "formerly": ("documentation", "write `documentation: {formerly: ..}`"),
    "misprint": ("documentation", "write `documentation: {misprint: ..}`"),
    "hidden": ("documentation", "write `documentation: {hidden: true}`"),
    "overhead": ("documentation", "write `documentation: {overhead: ..}`"),
    "present": (
        "none",
        "write `none: {type: i8, value: -1}`: a number in front of the layout; a condition is `when`",
    ),
}
"""Words that this language had before: word -> (the key that took its place, help)."""
_CHOICES: Mapping[str, str] = {
    **dict.fromkeys(("le", "<", "little-endian", "little_endian", "littleendian"), "little"),
    **dict.fromkeys(("be", ">", "big-endian", "big_endian", "bigendian", "network"), "big"),
    **dict.fromkeys(("crc32_iso_hdlc", "crc32_ieee", "zlib"), "crc32"),
    **dict.fromkeys(("castagnoli", "crc32_castagnoli", "crc32_iscsi"), "crc32c"),
    "crc64_rocksoft": "crc64_nvme",
    **dict.fromkeys(("xxhash", "xxhash64", "xxh64_64", "xx64"), "xxh64"),
    **dict.fromkeys(("xxh3", "xxhash3", "xxh3_64bits"), "xxh3_64"),
}
_RANGES = (
    (re.compile(r"(\d{1,5})\s*(?:\.\.|:|,|to|–)\s*(\d{1,5})\Z"), r"\1-\2"),
    (re.compile(r"(?:>=\s*)?(\d{1,5})\s*(?:\.\.|-|:)?\Z"), r"\1+"),
    (re.compile(r"(?:<=\s*|-)(\d{1,5})\Z"), r"0-\1"),
)
_NUMBER = r"(0x[0-9a-fA-F]{1,8}|[0-9]{1,9})"
_CASES = re.compile(rf"{_NUMBER}\s*(?:\.\.[.=]?|-|:|to|–)\s*{_NUMBER}\Z")
_BITS = re.compile(r"(\d{1,2})\s*(?:\.\.|-|:|,|to|–)\s*(\d{1,2})\Z")
_OPERATORS: Mapping[str, str] = {
    "===": "==",
    "!==": "!=",
    "&&": "and",
    "||": "or",
    "<>": "!=",
    "=<": "<=",
    "=>": ">=",
    "=": "==",
    "!": "not",
    "&": "and",
    "|": "or",
    "?": "if .. then .. else ..",
    ":": "if .. then .. else ..",
}
_BITWISE = re.compile(r"\^|~|<<|>>|[&|](?=\s*\(*\s*[~\dA-Z])")
_OPERATOR = re.compile("|".join(map(re.escape, sorted(_OPERATORS, key=len, reverse=True))))
_CONSTANTS: Mapping[str, str] = {
    **dict.fromkeys(("True", "TRUE", "yes", "Yes", "on", "On"), "true"),
    **dict.fromkeys(("False", "FALSE", "no", "No", "off", "Off"), "false"),
    **dict.fromkeys(("None", "Null", "NULL", "nil", "undefined"), "null"),
}
_QUOTES = ("'", '"')
_LONGEST = 80
_WIDEST = 1000
_NEGATION = re.compile(r"\b(?:when|default|valid|refuse|is)\s*:\s+(!)[a-z_]")
_LOOK_UP = re.compile(r":\s+([a-z_][a-z0-9_.]*)\[")
_TERNARY = re.compile(r"\b(?:when|default|valid|refuse|is)\s*:\s[^#]*?\s(\?)\s")


def type_help(text: str, known: Collection[str]) -> str:
    """Return help that names our type for a type name of another language: integers such as
    ``uint32`` if ``known``, the allowed types, has ours, and names of text and bytes types such as
    ``varchar`` if it has the types of binary data, such as varint. Return ``""`` for all other
    words.
    """
    word = text.lower()
    found = _INTEGER.match(word)
    ours = _C_TYPES.get(word) or ((f"{found[1] or 'i'}{found[2]}",) if found else ())
    if text not in known and ours and all(one in known for one in ours):
        return f"write {ours[0]}" + "".join(f", or {one} without a sign" for one in ours[1:])
    if "varint" not in known:
        return ""
    if word in _ENDED:
        return "write `{string: zero_terminated}` for text that a zero byte ends"
    if word in TEXTS:
        return (
            "write `{string: TYPE}`, where TYPE is that of the length before the text, such as i16"
        )
    if word in BYTES:
        return (
            "write `{bytes: TYPE}`, where TYPE is that of the length before the bytes, such as i32"
        )
    return ""


def key_help(text: str, known: Collection[str]) -> str:
    """Return help for an earlier key of this language, or a key of another schema language: our key
    if it is in ``known``, the allowed keys, or a sentence where we have no such key, as for a
    length in bits. Return ``""`` for other names.
    """
    new, help = _EARLIER.get(text.lower(), ("", ""))
    if new in known:
        return help
    if text.lower() in (*_SWITCH, "cases"):
        return 'write "by"' if "by" in known and "cases" in known else _CHOSEN * ("given" in known)
    if text.lower() in ("measures", "counts") and "reserved" in known:
        return _BIT_LENGTH
    ours = _KEYS.get(text.lower(), "")
    if ours == _SIZE and "measures" not in known:
        return _WHOLE_SIZE if "fields" in known else ""
    if " " in ours:
        return ours
    return f'write "{ours}"' if ours in known else ""


def word_help(text: str, known: Collection[str]) -> str:
    """Return help for a word that is not in ``known``: the first part of several known words, a
    type of another language, or another spelling or letter case of a known word, the first that
    fits. Return ``""`` if nothing does.
    """
    bare = {word.replace("_", ""): word for word in known}
    longer = [word for word in known if word.startswith(f"{text.lower()}_")]
    if len(longer) > 1:
        return f"write one of {', '.join(longer)}"
    ours = _CHOICES.get(text.lower()) or bare.get(re.sub(r"[-_/ ]", "", text.lower()), "")
    return type_help(text, known) or (f"write {ours}" if ours in known else "")


def range_help(text: str) -> str:
    """Return help that writes the range of the one field ``text``, or ``""`` if that is no name."""
    whole = f"or {{from: {text}}} to the end of the layout"
    return f"write {{from: {text}, to: {text}}}, {whole}" if NAME.match(text) else ""


def decimal_help(text: str, string: str) -> str:
    """Return help for the type of a decimal in a text file that names floats, strings or uuids, or
    ``""`` for other words. ``string`` is the kind of string to write instead: ``word`` or ``rest``.
    """
    word = text.lower()
    ours = _C_TYPES.get(word, (word,))[0]
    if ours in ("f16", "f32", "f64"):
        return f"a decimal is a whole number; write `string: {string}` for others"
    if ours == "uuid":
        return "write `uuid: base64url`"
    return f"write `string: {string}`" if word in TEXTS else ""


def name_help(text: str) -> str:
    """Return help with the snake_case spelling of a name (``write ab_c``), or ``""`` if that is no
    valid name either, or the name has more than 80 characters.
    """
    if len(text) > _LONGEST:
        return ""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[- ]+", "_", text).lower()
    return f"write {words}" if NAME.match(words) else ""


def versions_help(text: str) -> str:
    """Return help for a version range in another notation, or ``""`` if it is none or descends. A
    number alone counts as the first version of an open range.
    """
    for pattern, ours in _RANGES:
        found = pattern.match(text)
        if found is not None and int(found[1]) <= int(found[found.lastindex or 1]):
            return f"write {found.expand(ours)}"
    return ""


def cases_help(text: str) -> str:
    """Return help for a range of numbers in another notation, such as ``0x90..0x9f``, or ``""`` if
    ``text`` is none. The order of the numbers is not checked.
    """
    found = _CASES.match(text)
    return f"write {found[1]}-{found[2]}" if found is not None else ""


def bits_help(text: str) -> str:
    """Return help that writes two bit numbers in another notation as ``low-high``, in ascending
    order, or ``""`` if ``text`` is no such range.
    """
    found = _BITS.match(text)
    if found is None:
        return ""
    low, high = sorted((int(found[1]), int(found[2])))
    return f"write {low}-{high}"


def boolean_help(text: str) -> str:
    """Return ``write true`` or ``write false`` for another spelling of a boolean (``yes``, ``on``,
    ``1``, ``True`` and the like), or ``""``.
    """
    words = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
    word = text.lower()
    ours = words.get(word, word)
    return f"write {ours}" if ours in ("true", "false") else ""


def constant_help(text: str) -> str:
    """Return help for another spelling of true, false or null, or ``""``."""
    return f"write {_CONSTANTS[text]}" if text in _CONSTANTS else ""


def given_array_help(text: str) -> str:
    """Return ``write string`` or ``write bytes``, the words of this language for the elements of an
    array from outside, for a word that means text or bytes elsewhere. Return ``""`` for other
    words.
    """
    if text.lower() in TEXTS:
        return "write string"
    return "write bytes" if text.lower() in BYTES else ""


def find_foreign_operator(text: str, at: int) -> tuple[str, str] | None:
    """Return the foreign operator or quotation mark at index ``at`` and the help for it, or None if
    there is none. ``==`` and ``!=`` are our own. ``at`` must lie inside ``text``.
    """
    if text[at] in _QUOTES:
        return text[at], "values of an enum stand without quotes"
    bitwise = _BITWISE.match(text, at)
    if bitwise is not None:
        return bitwise[0], _TEST_OF_BIT
    if text[at] in "*/%":
        return text[at], "the language has sums and differences only: + and -"
    found = _OPERATOR.match(text, at)
    if found is None or (text.startswith(("==", "!="), at) and len(found[0]) < 3):
        return None
    return found[0], f"write {_OPERATORS[found[0]]}"


def yaml_help(reason: str, line: str) -> tuple[str, int | None]:
    """Return (help, column) for a YAML syntax error in ``line``. The help is ``""`` if no known
    cause fits; the column (from 1) is None unless the cause, such as ``? :`` or ``!``, lies
    elsewhere.
    """
    if "'\\t'" in reason:
        return "indent with spaces, not with tabs", None
    look_up = _LOOK_UP.search(line[:_WIDEST])
    if "but got '['" in reason and look_up is not None:
        return f'put the expression into quotes: "{look_up[1]}[..]"', None
    ternary, negation = _TERNARY.search(line[:_WIDEST]), _NEGATION.search(line[:_WIDEST])
    if ternary is not None:
        return "write if .. then .. else ..", ternary.start(1) + 1
    if negation is not None:
        return "write `not` in the place of `!`", negation.start(1) + 1
    if "mapping values are not allowed" in reason or "got ':'" in reason:
        return "put text that has a colon into quotes", None
    return "", None
