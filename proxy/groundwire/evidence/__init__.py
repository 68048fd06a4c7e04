"""Collect the sources of a request, cut them into passages, and index these."""
