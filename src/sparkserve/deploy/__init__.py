"""Moves a fleet from one closure to another as one transaction over all its nodes, and back."""
