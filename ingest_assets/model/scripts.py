"""Scripts that are written without spaces: where words end, no character says."""

# For a set of the module `regex`. A mark that several scripts share (scx) is in it too.
UNSPACED = "".join(
    rf"\p{{scx={script}}}" for script in ("Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr")
)
