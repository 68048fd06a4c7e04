"""Verifiers, which check a claim against a context: quotations, numbers, statements, values of a database."""
