"""The reward that the learner gets for a step."""

from quantail.envs.config import EnvironmentConfig


def training_reward(config: EnvironmentConfig, reward: float) -> float:
    """Return the reward, clipped if the settings say so."""
    if config.clip_rewards:
        reward = min(max(reward, -config.clip_rewards), config.clip_rewards)
    return reward
