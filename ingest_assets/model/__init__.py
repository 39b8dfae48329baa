"""The nouns of the product: items, rows and schemas, outcomes, options, ports and errors."""
