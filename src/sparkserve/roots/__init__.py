"""Engine roots, looked at from outside: what the machine that builds one can prove of it without running it.

`tree.Root` is a root as its layers make it. A rule is a function of it that returns a text for each file that
breaks the rule. Only the standard library is used: the rules run in a builder too (nix/root-check.nix).
"""
