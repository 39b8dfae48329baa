"""How a document is cut: what Docling's HybridChunker gives, at a multiple of its speed.

By default nothing here decides where to cut: Docling's and semchunk's own code does. What is ours is that
tokens are counted once per word, that nothing is written, checked or copied twice, and what our options add.
"""
