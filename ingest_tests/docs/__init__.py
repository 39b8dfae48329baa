"""README and guides: the generator of the reference pages, and tests that run what the pages show."""
