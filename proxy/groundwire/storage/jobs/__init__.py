"""Background jobs that survive the process."""
