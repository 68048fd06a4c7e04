"""Statements beside their evidence: vetoes, the lexicon behind them, and the learned model."""
