"""The API, put together: every route, one form of error, one schema."""
