"""Routes about who one is: logins, tokens, links."""
