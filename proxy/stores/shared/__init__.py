"""What replicas share, in Redis: verdicts and the limits of clients. Nothing of it is needed to answer."""
