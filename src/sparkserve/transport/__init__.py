"""Brings host closures into the nodes' own stores, proves their contents there, and switches generations."""
