"""The asset graph: one module per asset, each a sentence."""
