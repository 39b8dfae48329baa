"""Who makes vectors: model folders, the dense embedder and term counts."""
