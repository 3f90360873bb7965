"""Sessions run again from their logs."""
