"""A small world with random rewards whose return laws are known exactly."""

import gymnasium as gym
import numpy as np

STAGES, STATES, ACTIONS, DISCOUNT = 3, 2, 2, 0.9


class Lottery(gym.Env):
    """Three decisions; each pays at random and leads at random to one of two states of the next stage.

    `rewards[stage, state, action]` are two equally likely payments, `turn[...]` the chance of state 1.
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
    turn = np.array([[[0.5, 0.2], [0.7, 0.5]], [[0.3, 0.8], [0.5, 0.4]], [[0, 0], [0, 0]]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stage, self.state = 0, int(self.np_random.integers(STATES))
        return self._see(), {}

    def step(self, action):
        here = self.stage, self.state, action
        reward = float(self.rewards[here][self.np_random.integers(2)])
        self.state = int(self.np_random.random() < self.turn[here])
        self.stage += 1
        return self._see(), reward, self.stage == STAGES, False, {}

    def _see(self):
        return observation(min(self.stage, STAGES - 1), self.state)


def observation(stage, state):
    one_hot = np.zeros(STAGES * STATES, np.float32)
    one_hot[stage * STATES + state] = 1
    return one_hot


def exact_laws():
    """The law {return: chance} of every (stage, state, action), best play following; and that play."""
    laws, best = {}, {}
    for stage in reversed(range(STAGES)):
        for state in range(STATES):
            for action in range(ACTIONS):
                here, law = (stage, state, action), {}
                for reward in Lottery.rewards[here]:
                    for following, chance in ((1, Lottery.turn[here]), (0, 1 - Lottery.turn[here])):
                        if stage == STAGES - 1:
                            after = {0.0: 1.0}
                        else:
                            after = laws[stage + 1, following, best[stage + 1, following]]
                        for value, likely in after.items():
                            total = round(float(reward) + DISCOUNT * value, 9)
                            law[total] = law.get(total, 0.0) + 0.5 * chance * likely
                laws[here] = law
            means = [mean(laws[stage, state, action]) for action in range(ACTIONS)]
            best[stage, state] = int(np.argmax(means))
    return laws, best


def mean(law):
    return sum(value * chance for value, chance in law.items())


def quantile_function(law, taus):
    values = np.array(sorted(law))
    cumulated = np.cumsum([law[value] for value in values])
    return values[np.searchsorted(cumulated, taus).clip(max=len(values) - 1)]
