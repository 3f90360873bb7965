"""Proofs: every promise comes with a command that puts it to the test."""
