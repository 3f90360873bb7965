"""The terminal: screen, keyboard, colours, pickers."""
