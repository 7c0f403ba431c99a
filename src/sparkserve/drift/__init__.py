"""What changed: between two closures (`diff`), and on nodes since their closure came into effect (`verify`)."""
