"""Who may come in: tokens, rates, hosts, origins, TLS."""
