"""Entailment: does the evidence support, contradict or not mention a claim? Decided by a model that reads both."""
