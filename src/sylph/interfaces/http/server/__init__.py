"""The server process: binding, protocol, background tasks."""
