"""Benchmark one decision on the live page: return distributions, picture and message, at the server."""

import json
from collections.abc import Iterator

from quantail.agents.agent import Agent
from quantail.bench.measure import Row, race
from quantail.envs import make, specs_of
from quantail.networks import build_network
from quantail.recipes import compose
from quantail.risk import CVaR
from quantail.viewing.live.player import Player
from quantail.viewing.live.session import pane_of

ENVS = {"MinAtar/Breakout-v1": "minatar", "ALE/Breakout-v5": "atari-paper"}


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for IQN under CVaR(0.1); the bound is the decision and the environment step alone."""
    for name, preset in ENVS.items():
        config = compose(preset, {})
        env = make(name, config.environment)
        observation, actions = specs_of(env)
        network = build_network(config.network, config.head, observation, actions.count)
        agent = Agent(network, config, observation, actions, name, CVaR(0.1))
        player, alone = Player(agent, CVaR(0.1)), Player(agent, CVaR(0.1))

        def shown(player: Player = player) -> None:
            if player.over:
                player.restart(player.seed + 1)
            player.step()
            json.dumps(pane_of(player, 0, density=False))

        def bare(player: Player = alone, agent: Agent = agent) -> None:
            if player.over:
                player.restart(player.seed + 1)
            player.observation, _, *over, _ = player.env.step(agent.act(player.observation))
            player.over = "the end" if any(over) else ""

        row = race("watch", f"iqn {preset} decision on the page", shown, bare, seconds)
        row.more["frames_per_second"] = round(1000 / row.median_ms, 1)
        yield row
        for one in (player, alone):
            one.close()
        env.close()
