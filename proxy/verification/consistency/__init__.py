"""What a subject was told before, beside what it is told now (CO1, CO2). Pure: earlier answers come in as values."""
