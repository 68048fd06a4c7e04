"""Compare an answer with earlier answers about the same subject. Pure: earlier answers are passed in as values."""
