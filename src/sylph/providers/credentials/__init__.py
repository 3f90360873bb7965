"""Keys and logins at rest: where they are kept, how they are sealed, and who else on this machine has some."""
