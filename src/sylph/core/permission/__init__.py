"""What a call may do: modes, effects, rules, protected paths."""
