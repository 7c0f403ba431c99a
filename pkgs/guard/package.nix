# The memory guard (docs/guard.md): one static program.
{ cc }:
cc { name = "guard"; folder = ./src; }
