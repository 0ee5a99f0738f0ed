"""Tests of what arms one boot."""
