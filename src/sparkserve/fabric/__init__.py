"""The cables of a fleet: what is planned, drawn, and really there."""
