"""Split an answer into claims, and mark the parts that assert nothing."""
