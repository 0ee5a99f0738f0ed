"""What is remembered between runs: an SQLite data base."""
