"""The device behind a path, and how fast it is read cold."""
