"""What happens, told to an OpenTelemetry collector."""
