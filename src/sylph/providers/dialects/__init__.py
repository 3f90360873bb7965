"""The wire languages of model services, one folder each."""
