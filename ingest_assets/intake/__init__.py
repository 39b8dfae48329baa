"""How documents get in: the ledger that knows each one, the scan that finds them, their batches."""
