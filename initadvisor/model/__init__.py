"""Frozen values, enums, the codec table and errors: what every other layer speaks in."""
