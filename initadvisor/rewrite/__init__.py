"""Configuration text to configuration text: everything but the setting stays as it was."""
