"""The pages for reviewers: the queue, one exchange, and quality. Rendered on the server; they read without scripts."""
