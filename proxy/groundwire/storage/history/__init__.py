"""The database of exchanges: their reports, reviewers' decisions, and trends."""
