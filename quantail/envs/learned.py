"""A step as learning sees it."""

from quantail.settings import Settings


def as_learned(
    settings: Settings, reward: float, *, terminated: bool, life_lost: bool
) -> tuple[float, bool]:
    """The reward, clipped where the settings say so, and whether the return ends here."""
    if settings.clip_rewards:
        reward = min(max(reward, -settings.clip_rewards), settings.clip_rewards)
    return reward, terminated or (settings.life_loss_ends and life_lost)
