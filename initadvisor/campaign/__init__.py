"""The campaign's state machine, and its record: which images boot next, and what became of them."""

CAMPAIGNS = "campaigns"
"""The directory of the records, in the state's."""
