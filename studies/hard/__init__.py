"""Designs chosen to hurt, one module for each promise that they broke; see `adversary.py`."""
