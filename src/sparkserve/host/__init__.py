"""What a host closure does on its own node."""
