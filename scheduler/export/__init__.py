"""A sweep's results in the formats of other harnesses."""
