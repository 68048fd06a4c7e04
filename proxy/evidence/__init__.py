"""What must be asked for: a model, an encoder, a database. Judging what they answer is left to `verification/`."""
