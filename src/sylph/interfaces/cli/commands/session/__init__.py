"""Commands about sessions and what is in their logs."""
