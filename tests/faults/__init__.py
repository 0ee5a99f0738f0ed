"""Transactions over real files, in which each call to the file system fails or is the last one."""
