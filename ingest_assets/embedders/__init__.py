"""Embedding providers: from texts to vectors.

`providers.py` selects and opens the provider of the settings. To add one, write a class with `describe` and
`open` in its own file and list it in `BUILT_IN` there, or use an entry point of a package (`plugins.py`).
The built-in providers are `torch.py` (transformers and sentence-transformers), `onnx.py` (exports of
`onnx_export.py`, on the CPU), `remote.py` (any endpoint with OpenAI's protocol, through `endpoint.py`) and
`sparse.py` (SPLADE). `model_files.py` finds, checks and loads model folders, `model_fetch.py` downloads them,
and `model_layout.py` reads how a model must be used. `batcher.py` combines texts of several documents into
micro-batches, `cache.py` stores vectors between runs, and `errors.py` defines the errors.
"""
