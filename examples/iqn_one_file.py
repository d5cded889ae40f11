"""Implicit quantile networks in one file that you can read from top to bottom.

    python examples/iqn_one_file.py
    python examples/iqn_one_file.py --cvar 0.25 --steps 20000

This is the agent of Dabney et al. 2018 ("Implicit Quantile Networks for Distributional Reinforcement
Learning", https://arxiv.org/abs/1806.06923) on CartPole, written with torch, numpy and gymnasium only.
It learns the quantile function of the return: Z_τ(x, a) is the return that action a in state x stays
below with probability τ.

The file does not use Quantail, but it draws the same random numbers in the same order. A test trains
both with the same settings and finds the same weights, bit for bit (tests/test_iqn_one_file.py).

The settings favour clarity over speed of learning: with seed 0 the mean return of recent episodes was
160 after 22,000 steps and 250 after 49,000, of at most 500. Ten-step returns, Quantail's default here,
are left out.

In comments on shapes, B is the batch, T a number of quantile fractions and A the number of actions.
"""

import argparse
import copy
import math
import zlib
from collections import deque
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Settings:
    """The values of Quantail's preset `small`, with one-step targets. The names are Quantail's too."""

    env: str = "CartPole-v1"  # observations are vectors, actions are numbered from 0
    steps: int = 50_000
    seed: int = 0
    cvar: float = 1.0  # η: choose actions by the mean of their worst fraction η of returns; 1 is neutral

    torso_size: int = 128  # units of ψ
    head_size: int = 128  # units of the hidden layer of f
    embedding_size: int = 64  # n, the number of cosines of φ

    online_samples: int = 8  # N, quantile fractions of the prediction
    target_samples: int = 8  # N′, quantile fractions of the target
    policy_samples: int = 8  # K, quantile fractions for choosing an action
    kappa: float = 1.0  # κ, where the quantile Huber loss becomes linear
    discount: float = 0.99  # γ
    batch_size: int = 64
    learning_rate: float = 1e-3
    adam_epsilon: float = 1e-8
    train_frequency: int = 2  # steps between two updates
    target_update_interval: int = 500  # steps between two copies to the target network
    learning_starts: int = 1_000  # steps before the first update
    buffer_size: int = 50_000  # steps

    epsilon_start: float = 1.0
    epsilon_end: float = 0.01
    epsilon_steps: int = 10_000  # steps from the one to the other, once learning has started


# Randomness


def seed_sequence(seed: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))


def generator(seed: int, name: str) -> np.random.Generator:
    """Return a generator for one purpose, independent of those for others."""
    return np.random.default_rng(seed_sequence(seed, name))


def derived_seed(seed: int, name: str) -> int:
    """Return an integer seed derived from the seed and a name."""
    return int(seed_sequence(seed, name).generate_state(1)[0])


def sample_taus(rng: np.random.Generator, batch: int, count: int) -> Tensor:
    """Sample quantile fractions τ ~ U([0, 1]), [batch, count]."""
    return torch.from_numpy(rng.random((batch, count), dtype=np.float32))


# The network


class CosineEmbedding(nn.Module):
    """φ(τ) = ReLU(Σ_i cos(π i τ) w_i + b) for i = 1 … n, equation 4."""

    def __init__(self, size: int, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, features)
        self.register_buffer("frequencies", math.pi * torch.arange(1, size + 1), persistent=False)

    def forward(self, taus: Tensor) -> Tensor:
        cosines = torch.cos(taus.unsqueeze(-1) * self.frequencies)  # [B, T, n]
        return F.relu(self.linear(cosines))  # [B, T, features]


class ImplicitQuantileNetwork(nn.Module):
    """Z_τ(x, a) ≈ f(ψ(x) ⊙ φ(τ))_a."""

    def __init__(self, inputs: int, actions: int, s: Settings) -> None:
        super().__init__()
        self.psi = nn.Sequential(nn.Linear(inputs, s.torso_size), nn.ReLU())
        self.phi = CosineEmbedding(s.embedding_size, s.torso_size)
        self.f = nn.Sequential(
            nn.Linear(s.torso_size, s.head_size), nn.ReLU(), nn.Linear(s.head_size, actions)
        )
        seed = derived_seed(s.seed, "weights")
        initialise([self.psi[0]], derived_seed(seed, "torso"))
        initialise([self.phi.linear, self.f[0], self.f[2]], derived_seed(seed, "head"))

    def forward(self, observations: Tensor, taus: Tensor) -> Tensor:
        """Return Z_τ(x, a): observations [B, inputs] and taus [B, T] -> [B, T, A]."""
        features = self.psi(observations).unsqueeze(1)  # [B, 1, features]
        return self.f(features * self.phi(taus))


@torch.no_grad()
def initialise(layers: list[nn.Linear], seed: int) -> None:
    """Draw weights and biases uniformly from ±1/√fan_in."""
    rng = torch.Generator().manual_seed(seed)
    for layer in layers:
        bound = 1 / math.sqrt(layer.in_features)
        layer.weight.uniform_(-bound, bound, generator=rng)
        layer.bias.uniform_(-bound, bound, generator=rng)


# Replay


class Replay:
    """Keep the newest steps in a ring and sample transitions uniformly.

    Step i holds an observation, the action taken and the reward received. The next observation is that
    of step i + 1, so each is stored once. The last observation of a truncated episode, which the target
    needs because the return does not end there, is stored as a step in which no action is taken.
    """

    def __init__(self, capacity: int, inputs: int, rng: np.random.Generator) -> None:
        self.capacity, self.rng = capacity, rng
        self.observations = np.zeros((capacity, inputs), np.float32)
        self.actions = np.zeros(capacity, np.int64)
        self.rewards = np.zeros(capacity, np.float32)
        self.terminated = np.zeros(capacity, bool)
        self.acted = np.zeros(capacity, bool)  # whether an action was taken in this step
        self.written = 0  # steps so far; step i is stored at i % capacity

    def add(
        self, observation: np.ndarray, action: int, reward: float, terminated: bool, acted: bool = True
    ) -> None:
        """Append a step; `acted` is False for the last observation of a truncated episode."""
        at = self.written % self.capacity
        self.observations[at], self.actions[at], self.rewards[at] = observation, action, reward
        self.terminated[at], self.acted[at] = terminated, acted
        self.written += 1

    def sample(self, count: int) -> tuple[Tensor, ...]:
        """Return x [B, inputs], a [B], r [B], whether the episode terminated [B], and x′ [B, inputs]."""
        size = min(self.written, self.capacity)
        steps = np.zeros(count, np.int64)
        missing = np.arange(count)
        while len(missing):  # draw again where no complete transition starts
            steps[missing] = self.written - size + self.rng.integers(size, size=len(missing))
            missing = missing[~self._complete(steps[missing])]
        at, following = steps % self.capacity, (steps + 1) % self.capacity
        x, a, r, end = (
            torch.from_numpy(stored[at])
            for stored in (self.observations, self.actions, self.rewards, self.terminated)
        )
        # After a terminal step x′ does not belong to the episode, but its discount is 0.
        return x, a, r, end, torch.from_numpy(self.observations[following])

    def _complete(self, steps: np.ndarray) -> np.ndarray:
        """Return whether each step has an action and, unless it was terminal, a next observation."""
        at = steps % self.capacity
        return self.acted[at] & (self.terminated[at] | (steps + 1 < self.written))


# Acting


def epsilon_at(step: int, s: Settings) -> float:
    """Return ε: constant until learning starts, then linear from `epsilon_start` to `epsilon_end`."""
    if step < s.learning_starts:
        return s.epsilon_start
    if step >= s.learning_starts + s.epsilon_steps:
        return s.epsilon_end
    change = s.epsilon_end - s.epsilon_start
    return s.epsilon_start + change * (step - s.learning_starts) / s.epsilon_steps


@torch.no_grad()
def greedy_action(
    network: nn.Module, observation: np.ndarray, rng: np.random.Generator, s: Settings
) -> int:
    """Return argmax_a Q_β(x, a), where Q_β is the mean of Z at β(τ) over K samples of τ (equation 2).

    β(τ) = ητ gives the mean of the worst fraction η of returns, which is CVaR; η = 1 gives the mean.
    """
    taus = s.cvar * sample_taus(rng, 1, s.policy_samples)  # [1, K]
    values = network(torch.from_numpy(observation).unsqueeze(0), taus).mean(dim=1)  # [1, A]
    return int(values.argmax())


# Learning


def quantile_huber_loss(predictions: Tensor, taus: Tensor, targets: Tensor, kappa: float) -> Tensor:
    """Return Σ_i E_j[ρ^κ_τi(δ_ij)] with ρ^κ_τ(δ) = |τ − 1{δ < 0}| L_κ(δ) / κ (equation 3).

    predictions [B, N] at taus [B, N] and targets [B, N′] -> [B]. The weight is τ where the
    prediction is too low and 1 − τ where it is too high, so the minimum is close to the τ-quantile.
    """
    delta = targets.unsqueeze(1) - predictions.unsqueeze(2)  # δ_ij, [B, N, N′]
    size = delta.abs()
    huber = torch.where(size <= kappa, 0.5 * delta**2, kappa * (size - 0.5 * kappa))  # L_κ(δ)
    weight = (taus.unsqueeze(2) - (delta < 0).float()).abs()
    return (weight * huber / kappa).mean(dim=2).sum(dim=1)


def of_actions(returns: Tensor, actions: Tensor) -> Tensor:
    """Select one action per state: [B, T, A] and [B] -> [B, T]."""
    index = actions.view(-1, 1, 1).expand(-1, returns.shape[1], 1)
    return returns.gather(2, index).squeeze(2)


@torch.no_grad()
def compute_targets(
    target: nn.Module,
    rewards: Tensor,
    terminated: Tensor,
    next_observations: Tensor,
    rng: np.random.Generator,
    s: Settings,
) -> Tensor:
    """Return r + γ Z_τ′(x′, a*) at N′ samples of τ′, [B, N′], where a* is greedy for Q_β."""
    policy_taus = s.cvar * sample_taus(rng, len(rewards), s.policy_samples)  # β(τ), [B, K]
    target_taus = sample_taus(rng, len(rewards), s.target_samples)  # τ′, [B, N′]
    both = target(next_observations, torch.cat([policy_taus, target_taus], dim=1))  # [B, K + N′, A]
    best = both[:, : s.policy_samples].mean(dim=1).argmax(dim=1)  # a*, [B]
    returns = of_actions(both[:, s.policy_samples :], best)  # [B, N′]
    # Only termination ends the return; a truncated episode would have gone on.
    discounts = s.discount * (~terminated).float()
    return rewards.unsqueeze(1) + discounts.unsqueeze(1) * returns


def update(
    online: nn.Module,
    target: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, ...],
    rng: np.random.Generator,
    s: Settings,
) -> None:
    """Take one gradient step on a batch (Algorithm 1)."""
    observations, actions, rewards, terminated, next_observations = batch
    targets = compute_targets(target, rewards, terminated, next_observations, rng, s)
    taus = sample_taus(rng, len(actions), s.online_samples)  # [B, N]
    predictions = of_actions(online(observations, taus), actions)  # Z_τ(x, a), [B, N]
    loss = quantile_huber_loss(predictions, taus, targets, s.kappa).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(s: Settings) -> ImplicitQuantileNetwork:
    """Train an agent, print the recent returns every 1,000 steps, and return the network."""
    env = gym.make(s.env)
    inputs, num_actions = env.observation_space.shape[0], int(env.action_space.n)
    online = ImplicitQuantileNetwork(inputs, num_actions, s)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=s.learning_rate, eps=s.adam_epsilon, fused=True)
    replay = Replay(s.buffer_size, inputs, generator(s.seed, "replay"))
    episodes, exploration = generator(s.seed, "episodes"), generator(s.seed, "exploration")
    acting_taus, learning_taus = generator(s.seed, "acting-taus"), generator(s.seed, "learning-taus")

    recent: deque[float] = deque(maxlen=20)  # returns of the last episodes
    episode_return = 0.0
    observation, _ = env.reset(seed=int(episodes.integers(2**31)))
    for step in range(1, s.steps + 1):
        explore = exploration.random() < epsilon_at(step - 1, s)
        action = int(num_actions * exploration.random())
        if not explore:
            action = greedy_action(online, observation, acting_taus, s)

        next_observation, reward, terminated, truncated, _ = env.step(action)
        episode_return += float(reward)
        replay.add(observation, action, float(reward), terminated)
        observation = next_observation
        if truncated and not terminated:
            replay.add(observation, 0, 0.0, False, acted=False)
        if terminated or truncated:
            recent.append(episode_return)
            episode_return = 0.0
            observation, _ = env.reset(seed=int(episodes.integers(2**31)))

        if step >= s.learning_starts and step % s.train_frequency == 0:
            update(online, target, optimizer, replay.sample(s.batch_size), learning_taus, s)
        if step % s.target_update_interval == 0:
            target.load_state_dict(online.state_dict())
        if step % 1_000 == 0 and recent:
            print(
                f"step {step:>7,}  mean return of the last {len(recent)} episodes "
                f"{np.mean(recent):7.1f}  ε {epsilon_at(step, s):.2f}",
                flush=True,
            )
    env.close()
    return online


def main() -> None:
    parser = argparse.ArgumentParser(description="Train IQN on CartPole.")
    for name, text in (
        ("env", "id of a Gymnasium environment with vectors as observations and discrete actions"),
        ("steps", "number of steps to train"),
        ("seed", "seed of all random numbers"),
        ("cvar", "choose actions by the mean of their worst fraction of returns, from 0 to 1"),
    ):
        default = getattr(Settings, name)
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    torch.set_num_threads(1)  # faster for networks of this size
    train(Settings(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
