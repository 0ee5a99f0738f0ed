"""From an image to an answer: recommend, what-if, explain."""
