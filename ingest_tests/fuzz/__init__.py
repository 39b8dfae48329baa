"""Broken files by the thousand, through the product as it runs: small seeds of every format, mutated."""
