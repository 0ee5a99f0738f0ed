"""A report of this machine's answer, for people: a page, or text for a forum."""
