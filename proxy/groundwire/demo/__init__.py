"""The demonstration: a stand-in model server, three requests, and the proxy's reports on the answers."""
