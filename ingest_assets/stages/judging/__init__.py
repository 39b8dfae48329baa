"""What admission knows about one document by itself: pure functions of its text, rows and options."""
