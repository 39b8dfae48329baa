"""Admission: which converted documents go on to be chunked.

Each document passes five checks in order (`CHECKS` in the settings); the first rejection is final and is
stored with the check, the reason, the measured value and the limit. `stage.py` is the stage and its rows.
`reading.py` takes the text from a row of doctags; `facts.py`, `language.py` and `garbled.py` measure it.
`rules.py` has the rules of the fast and the structural filter: a new rule is a function in its `RULES` and a
reason in the settings. `phrases.toml` lists the words that the rules look for. `judge.py` puts filters,
quality, tier and the near-duplicate signature together; all but `stage.py` is pure functions of one
document's text, rows and options.
"""
