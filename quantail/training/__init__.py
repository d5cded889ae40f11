"""Training: the one place that puts the parts together."""
