"""The machine: one log, one session, one turn; it knows no provider, tool or door by name."""
