"""`python3 -I -S src/sparkserve/doctor`: the doctor with no harness, no site packages, no environment."""

import sys
from pathlib import Path

if not __package__:  # run as a folder: Python put the folder itself first, where `checks` would be top level
    sys.dont_write_bytecode = True
    sys.path[0] = str(Path(__file__).absolute().parents[2])

from sparkserve.doctor.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
