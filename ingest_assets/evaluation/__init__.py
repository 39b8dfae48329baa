"""How good it is: what the product makes of documents, measured against what it should have made of them.

The measures are pure functions of two Markdown texts; only `parse` reads documents.
"""
