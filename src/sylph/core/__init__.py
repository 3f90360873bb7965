"""Values and contracts: pure, and known to every other room."""
