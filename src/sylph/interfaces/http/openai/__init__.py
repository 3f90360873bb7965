"""Sylph as a model: the two dialects that existing clients speak, over the same sessions as every other door."""
