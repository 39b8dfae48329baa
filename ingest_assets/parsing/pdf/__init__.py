"""The embedded engine: what a page holds, read without a download.

A small detector finds the regions of a page; where the words stand, their fonts and the lines drawn between
them decide the rest. Everything but `plugin` and `pipeline` is plain geometry and text, without Docling.
"""
