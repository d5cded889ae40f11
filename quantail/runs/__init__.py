"""A run on disk: its folder, description, tables, checkpoints and saved results."""
