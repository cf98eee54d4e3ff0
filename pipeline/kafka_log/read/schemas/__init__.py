"""Schemas of keys and values, from the topic in which a schema registry stores them, and decoders that use them."""

PARTS = ("key", "value")
"""Parts of a record that are decoded."""
