"""The reward that the learner gets for a step."""

from quantail.settings import Settings


def training_reward(settings: Settings, reward: float) -> float:
    """Return the reward, clipped if the settings say so."""
    if settings.clip_rewards:
        reward = min(max(reward, -settings.clip_rewards), settings.clip_rewards)
    return reward
