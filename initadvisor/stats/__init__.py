"""The cost model and the decision: pure functions, seeds passed in."""
