"""Pages that the server brings along: files without a build, and no script in them."""
