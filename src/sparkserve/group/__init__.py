"""The engine as one group: a supervisor on every node, and on the head the controller that they all obey."""
