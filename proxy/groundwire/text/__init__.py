"""Process English text: sentences, general vocabulary, and which words a text asserts or denies."""
