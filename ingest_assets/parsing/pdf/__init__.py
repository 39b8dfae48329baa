"""The embedded engine: reads PDF pages and images with models from Python packages.

A small detector finds the regions of a page; positions of words, their fonts and drawn lines decide the
rest. All modules but `pipeline`, `pages`, `ocr` and `registries` are geometry and text without Docling.
"""
