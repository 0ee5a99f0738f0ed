"""Arms a boot, judges what became of it, and clears up."""
