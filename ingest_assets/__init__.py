"""A Dagster deployment that turns a growing pile of documents into doctags, chunks and embeddings."""

import os

# ONNX Runtime reports to its makers unless this is set before it loads. Documents are nobody's business.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
