"""Block devices, mounts, and how fast files are read cold."""
