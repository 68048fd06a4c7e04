"""What was said, kept in a database: exchanges with their reports, what reviewers decided, and trends (HI, RV, QM)."""
