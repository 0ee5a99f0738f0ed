"""Timing and verifying candidates in virtual machines."""
