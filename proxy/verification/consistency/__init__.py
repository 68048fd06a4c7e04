"""What a subject was told before, beside what it is told now. Pure: earlier answers come in as values."""
