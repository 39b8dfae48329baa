"""Chunking: the same chunks as Docling's HybridChunker, at a multiple of its speed.

By default, Docling's and semchunk's own code decides where to cut. The modules here count the tokens of each
word once, avoid repeated serialization, validation and copies, and add the options of `[chunks]`.
"""
