"""Alignment of statements with their evidence: vetoes, features and the learned lexical model."""
