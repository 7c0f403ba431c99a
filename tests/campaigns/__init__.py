"""Campaigns of many boots, simulated and on the scripted engine: what the comparison is worth."""
