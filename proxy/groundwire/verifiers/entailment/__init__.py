"""Entailment: a model judges whether evidence supports, contradicts or does not mention a claim."""
