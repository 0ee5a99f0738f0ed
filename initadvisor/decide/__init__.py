"""The cost model and the decision. Pure functions; seeds are passed in."""
