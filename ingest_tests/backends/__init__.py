"""Where items run: one contract over every backend, and what only processes or threads promise."""
