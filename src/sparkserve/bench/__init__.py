"""Speed: measured in boots, compared in boots, reported with intervals."""
