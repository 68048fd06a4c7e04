"""Back ends that are queried for evidence: models, encoders, databases. `verification/` judges their answers."""
