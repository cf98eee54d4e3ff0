"""Targets: each is one package, and one line in the registry."""
