"""Secrets stay here: found before anything is written or sent, and put back where tools need them."""
