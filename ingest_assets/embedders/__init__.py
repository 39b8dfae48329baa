"""Embedding providers: from texts to vectors.

`providers.py` chooses and opens the provider that the settings name; a new one is a class with `describe` and
`open` in a file of its own, listed in `BUILT_IN` there, or an entry point of another package (`plugins.py`).
The built-in ones are `torch.py` (transformers and sentence-transformers), `onnx.py` (exports of
`onnx_export.py` on the CPU), `remote.py` (any endpoint with OpenAI's protocol, asked by `endpoint.py`) and
`sparse.py` (SPLADE). `model_files.py` finds, checks and loads model folders, `model_fetch.py` downloads them,
and `model_recipe.py` reads how a model is to be used. `batching.py` joins texts of several documents into
micro-batches, whose default sizes stand with each provider, `cache.py` remembers vectors between runs, and
`errors.py` lists why a text may have no vector.
"""
