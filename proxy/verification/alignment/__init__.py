"""Statements alongside their evidence: vetoes, features and the learned model of words."""
