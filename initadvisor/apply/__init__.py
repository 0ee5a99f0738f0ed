"""Applying a setting: plan, build, verify, prove, commit, roll back, watch afterwards."""
