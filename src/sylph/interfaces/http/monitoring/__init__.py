"""Health, metrics, logs and status of the server."""
