"""What is wrong with this host, and the command that mends it: `sparkserve doctor`.

It must run when all else is broken, so nothing in this folder imports more than the standard library; and it
changes nothing, which `guard` enforces.
"""
