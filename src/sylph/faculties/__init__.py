"""Faculties: what the agent can do beyond acting, each a plugin of its own."""
