"""Every model call: gateway, routes, limits, circuit breaker."""
