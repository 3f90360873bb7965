"""The files of a workspace over HTTP. Nothing outside of it, and nothing that is protected, is read or written."""
