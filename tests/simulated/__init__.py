"""What holds over many simulated machines: part of `make test`, too slow for `make check`."""
