"""What commands are made of: context, options, exit codes, lazy loading."""
