"""How a small encoder is trained to judge claims: pairs, fine-tuning, export. Nothing of it runs in the proxy."""
