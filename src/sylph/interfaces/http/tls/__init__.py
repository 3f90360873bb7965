"""TLS: the certificate that the server shows, its own or one that it makes itself."""
