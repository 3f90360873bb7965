"""Commands that set Sylph up."""
