"""Definitions of formats in other languages, as YAML of this one. What such a language means stays in here."""
