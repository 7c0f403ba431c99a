"""sparkserve: one model, several DGX Sparks, every byte pinned."""

__version__ = "0.1.0"
