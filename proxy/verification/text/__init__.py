"""English text: sentences, general vocabulary, and what the words of a text assert or deny."""
