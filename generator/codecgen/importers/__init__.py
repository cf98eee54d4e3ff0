"""Importers: definitions of formats in other languages, converted to schema files."""
