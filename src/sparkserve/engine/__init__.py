"""The engine process on one node: how it is spelled, started, watched and stopped."""
