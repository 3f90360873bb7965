"""The face of the engine: create, find, read and watch sessions, and send them commands."""
