"""Collect transitions from environments: in this process, or by actors on Ray."""
