"""The harness's side of the memory guard: what it says, what it is told, and the cgroup that it kills."""
