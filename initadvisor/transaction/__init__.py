"""Several files replaced as one: all new or all old, whatever happens in between."""
