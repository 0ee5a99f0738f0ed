"""What is needed here, what was found, and what to do about it."""
