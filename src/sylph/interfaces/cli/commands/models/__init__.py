"""Commands about models and roles."""
