"""Debian guests: made once, booted without KVM, judged by what they say and leave behind."""
