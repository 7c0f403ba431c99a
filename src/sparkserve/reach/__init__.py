"""The nodes of a fleet and its endpoint: how they are reached, and what they say, wherever the nodes are."""
