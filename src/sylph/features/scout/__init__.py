"""What is looked up in the workspace before a turn."""
