"""Learning: the loss, the Bellman target and one update, as in Algorithm 1 of the paper."""
