"""Routes about sessions, messages, turns and tasks."""
