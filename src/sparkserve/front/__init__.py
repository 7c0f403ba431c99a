"""The front: owns the public port on the head, passes requests on, and tells the truth about health."""
