"""Commands that prove promises."""
