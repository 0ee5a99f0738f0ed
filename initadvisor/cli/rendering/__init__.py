"""What the commands share to show their answers."""
