"""Several files replaced as one: all new or all old, whatever happens in between."""

TRANSACTIONS = "transactions"
"""The directory of the state that the records are in."""
