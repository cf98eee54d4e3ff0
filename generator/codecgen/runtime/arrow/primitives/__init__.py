"""Primitives of the kernels: small functions that compiled code is made of, wherever it is used."""
