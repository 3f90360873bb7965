"""A command line, read and judged before it runs."""
