"""Traces and metrics for a collector."""
