"""What can be wrong with a session: one function for each question, pure over its events."""
