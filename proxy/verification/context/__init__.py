"""Evidence: the sources of a request, cut into passages and indexed."""
