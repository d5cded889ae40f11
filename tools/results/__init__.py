"""The results queue: runs that are planned in results/queue.toml and recorded in results/*.csv."""
