"""What several interfaces change: configuration, identity files, attachments."""
