"""Few examples per property: there are many properties."""

from hypothesis import settings

settings.register_profile("few", max_examples=10, deadline=None)
settings.load_profile("few")
