"""How good it is: what the product makes of documents, measured against what it should have made of them.

The measures of reading are pure functions of two Markdown texts, and only `parse` reads documents. Those of
finding are pure functions of rankings and labels; commands make the rankings from a home's tables.
"""
