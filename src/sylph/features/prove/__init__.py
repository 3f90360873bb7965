"""Proofs of what Sylph promises, which users can run."""
