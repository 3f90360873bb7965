"""Wire dialects: one module for each way a model service talks."""
