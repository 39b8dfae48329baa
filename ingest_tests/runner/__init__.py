"""Whether and how often items run."""
