"""Routes about the configuration, models, services and rules."""
