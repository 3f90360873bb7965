"""Scripted sessions that proofs play, and interrupt."""
