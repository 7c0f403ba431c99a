"""The command line. A file in `commands/` is a command: its module attribute `command` is a click command."""
