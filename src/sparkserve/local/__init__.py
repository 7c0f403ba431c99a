"""The laptop fleet: a whole fleet on one small machine."""
