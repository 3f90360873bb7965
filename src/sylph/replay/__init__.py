"""A recorded session run again from its log, and compared."""
