"""The campaign's state machine, and its record: which images boot next, and what became of them."""
