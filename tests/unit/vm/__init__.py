"""Virtual machines, without any."""
