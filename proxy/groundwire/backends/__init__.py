"""Back ends that are queried for evidence: models, encoders, databases. They judge nothing themselves."""
