"""Errors, settings, codecs, estimates, configuration. Pure: imports nothing of the package."""
