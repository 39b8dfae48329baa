"""A Dagster deployment that turns a growing pile of documents into doctags, chunks and embeddings."""
