"""From what boots left behind to recorded boots."""
