"""Asset checks: true sentences about tables, each a pure predicate with a thin wrapper."""
