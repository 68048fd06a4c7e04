"""Claims: an answer cut into what it asserts, with what asserts nothing set aside."""
