"""Benches: one table in one run, each figure beside a bare-Python floor that does the same work."""
