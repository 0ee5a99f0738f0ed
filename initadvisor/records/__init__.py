"""What is kept: boots, lab runs, verdicts, trials' outcomes. Pure values."""
