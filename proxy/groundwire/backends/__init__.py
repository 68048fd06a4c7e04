"""Back ends that are queried for evidence: models, encoders, databases. The judgement itself is elsewhere and does no I/O."""
