"""Views that are computed from the log, and kept as snapshots."""
