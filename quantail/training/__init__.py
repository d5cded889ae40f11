"""Training loop, checkpoints and run folders. Only this package combines all the other parts."""
