"""Checkpoints of a workspace: what calls changed in it, and the way back."""
