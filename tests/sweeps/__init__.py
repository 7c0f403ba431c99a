"""What each gate is tried with: a file NAME.py for the gate NAME (`_` for `-`).

`CLEAN` are fields of a Script that a good engine needs to pass; `FAULTS` has by fault its strengths, the
weakest first, each a label and fields of a Script. `PATCH` are values of the gate's module that only cost
time here.
"""
