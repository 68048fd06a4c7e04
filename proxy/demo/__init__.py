"""The demonstration: a stand-in for a model server, three requests, and what the proxy says of the answers."""
