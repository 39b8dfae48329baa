"""What happens to one item: documents, doctags, chunks and embeddings, each a frozen, picklable recipe."""
