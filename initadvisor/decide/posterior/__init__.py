"""What boots say of the cost model's parameters."""
