"""The reward and terminal flag that the learner gets for a step."""

from quantail.settings import Settings


def training_signal(
    settings: Settings, reward: float, *, terminated: bool, life_lost: bool
) -> tuple[float, bool]:
    """Return the reward, clipped if the settings say so, and whether the return ends at this step."""
    if settings.clip_rewards:
        reward = min(max(reward, -settings.clip_rewards), settings.clip_rewards)
    return reward, terminated or (settings.life_loss_ends and life_lost)
