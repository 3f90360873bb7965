"""Budgets that hold: the worst case of every model call is put aside before it is made, and settled after."""
