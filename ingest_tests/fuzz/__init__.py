"""Thousands of broken files through the product: small seeds of every format, mutated."""
