"""A cap that holds under many agents and kills."""
