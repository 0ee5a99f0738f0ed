"""Settings worth trying: planned, sampled, built, kept."""
