"""Tests of the queue, each on SQLite and on PostgreSQL."""
