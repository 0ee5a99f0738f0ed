"""Shipped tables: decompression ratios, errors of samples, boots of other machines."""
