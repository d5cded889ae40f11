"""A small environment with random rewards whose return distributions are known exactly."""

import gymnasium as gym
import numpy as np

STAGES, STATES, ACTIONS, DISCOUNT = 3, 2, 2, 0.9


class Lottery(gym.Env):
    """Three decisions, each with a random reward and a random transition to one of two next states.

    `rewards[stage, state, action]` are two equally weight rewards; `next_probs[...]` is the probability
    that the next state is 1.
    """

    observation_space = gym.spaces.Box(0, 1, (STAGES * STATES,), np.float32)
    action_space = gym.spaces.Discrete(ACTIONS)
    rewards = np.array(
        [
            [[(-3, 5), (0, 0.5)], [(1, 2), (-4, 2)]],
            [[(2, 2.5), (-2, 3)], [(-1, 0), (-5, 9)]],
            [[(0, 4), (1, 1)], [(-2, 6), (0, 0.5)]],
        ],
        float,
    )
    next_probs = np.array([[[0.5, 0.2], [0.7, 0.5]], [[0.3, 0.8], [0.5, 0.4]], [[0, 0], [0, 0]]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stage, self.state = 0, int(self.np_random.integers(STATES))
        return self._observe(), {}

    def step(self, action):
        here = self.stage, self.state, action
        reward = float(self.rewards[here][self.np_random.integers(2)])
        self.state = int(self.np_random.random() < self.next_probs[here])
        self.stage += 1
        return self._observe(), reward, self.stage == STAGES, False, {}

    def _observe(self):
        return observation(min(self.stage, STAGES - 1), self.state)


def observation(stage, state):
    one_hot = np.zeros(STAGES * STATES, np.float32)
    one_hot[stage * STATES + state] = 1
    return one_hot


def exact_distributions():
    """Return the return distributions and actions of the optimal policy.

    The distributions are {return: probability} for every (stage, state, action), and the actions are
    {(stage, state): action}.
    """
    distributions, best = {}, {}
    for stage in reversed(range(STAGES)):
        for state in range(STATES):
            for action in range(ACTIONS):
                here, distribution = (stage, state, action), {}
                for reward in Lottery.rewards[here]:
                    one = Lottery.next_probs[here]
                    for following, probability in ((1, one), (0, 1 - one)):
                        if stage == STAGES - 1:
                            after = {0.0: 1.0}
                        else:
                            after = distributions[stage + 1, following, best[stage + 1, following]]
                        for value, weight in after.items():
                            total = round(float(reward) + DISCOUNT * value, 9)
                            distribution[total] = (
                                distribution.get(total, 0.0) + 0.5 * probability * weight
                            )
                distributions[here] = distribution
            means = [mean(distributions[stage, state, action]) for action in range(ACTIONS)]
            best[stage, state] = int(np.argmax(means))
    return distributions, best


def mean(distribution):
    return sum(value * probability for value, probability in distribution.items())


def quantile_function(distribution, taus):
    values = np.array(sorted(distribution))
    cumulative = np.cumsum([distribution[value] for value in values])
    return values[np.searchsorted(cumulative, taus).clip(max=len(values) - 1)]
