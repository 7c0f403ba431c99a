"""Quality gates: each a file of `kinds`, its verdict an evidence file."""
