"""Measure the information budget: whether the cited evidence changes a model's belief in a claim."""
