"""Answers about log directories. Each subject is a package with its table, its text and its command."""
