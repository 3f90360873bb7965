"""Features: what the agent can do beyond acting, one folder each."""
