"""Shows what sparkserve does, on nodes of this machine, with faults that are real."""
