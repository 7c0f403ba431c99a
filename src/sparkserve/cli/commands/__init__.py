"""One file per command or command group."""
