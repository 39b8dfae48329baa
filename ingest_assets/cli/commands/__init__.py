"""The tree of commands: names, flags and words, so that help and typos are answered at once.

Nothing here imports a library at its top but Typer; what a command does is imported when it is called.
"""
