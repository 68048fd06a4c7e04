"""State shared by replicas in Redis: verdicts and client limits. Answers do not depend on it."""
