"""Admission: decides which converted documents are chunked.

Each document passes five checks in order (`CHECKS` in the settings); the first rejection is final and is
stored with the check, the reason, the measured value and the limit. `stage.py` has the stage and its rows.
`document_text.py` reads the text of a row of doctags; `facts.py`, `language.py` and `garbled.py` measure it.
`rules.py` has the rules of the fast and the structural filter: a new rule is a function in its `RULES` and a
reason in the settings. `phrases.toml` lists the words that the rules search for. `judge.py` combines filters,
quality, tier and the near-duplicate signature. All modules but `stage.py` are pure functions of one
document's text, rows and options.
"""
