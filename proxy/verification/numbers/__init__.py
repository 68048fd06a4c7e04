"""Numbers: their grammar, what they measure, and when two of them agree."""
