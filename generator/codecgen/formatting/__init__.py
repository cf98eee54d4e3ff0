"""Rewrite schema files in the canonical form of ``codecgen fmt``; comments and meaning stay."""
