"""Train a small encoder to judge claims: pairs, fine-tuning, export. Not used by the proxy at run time."""
