"""The settings that people change first, in a few words each. Importing this loads nothing else."""

FIRST = {
    "agent": "iqn, qr-dqn, c51, dqn, rainbow, ...: see quantail agents",
    "risk": "neutral, cvar:0.25, wang:-0.75, ...: see quantail risks",
    "steps": "length of the run in environment steps",
    "seed": "seed of everything random: same seed, same result",
    "num_envs": "environments played side by side",
    "workers": "processes that step them; 0 is the training process",
    "learning_rate": "learning rate of the optimizer",
    "discount": "discount factor per step",
    "n_step": "rewards summed before bootstrapping",
    "buffer_size": "capacity of the replay buffer in steps",
    "device": "auto, cpu, cuda or mps",
}
