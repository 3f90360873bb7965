"""Find and grep."""
