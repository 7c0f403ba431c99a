"""The statistics under gates and bench, free of files and engines: docs/bench-statistics.md."""
