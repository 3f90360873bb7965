"""Notifications to a person."""
