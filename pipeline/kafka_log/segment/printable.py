"""Escapes for texts that are printed: names, paths and messages come from files, which may be hostile."""


def escape_unprintable(text: str) -> str:
    """Return `text` with each character escaped, as in Python's ``repr``, that ``str.isprintable``
    rejects: control characters with tabs and ends of lines, those that change the direction of
    text, all blanks but the space, lone surrogates, private-use and unassigned characters.
    Backslashes and quotes stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
