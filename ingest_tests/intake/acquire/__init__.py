"""Acquiring what is queued."""
