"""The append-only log of all sessions: store, writer, hash chain, export, erasing, search."""
