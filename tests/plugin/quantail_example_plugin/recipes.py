"""Agents, which are combinations of parts; presets, which are sets of settings; and a protocol."""

from quantail import Preset, Protocol, Recipe

MIXTURE_DQN = Recipe(
    summary="learns a mixture of Gaussians by maximum likelihood",
    paper="after Morimura et al. 2010, arXiv 1203.3497",
    head="gaussian-mixture",
    torso="lstm",
    target={"name": "softmax", "temperature": 0.5},
    gradient_clip=10.0,
    on={"example": {"learning_rate": 5e-4}},
)

EXPECTILE_DQN = Recipe(
    summary="learns the expectiles of the return",
    paper="after Rowland et al. 2019, arXiv 1902.08102",
    head={"name": "expectiles", "count": 15},
    torso="lstm",
)

EXAMPLE = Preset(
    summary="short runs on small observations, the last four of which are stacked",
    like="small",
    stack=4,
    steps=20_000,
    heads={"gaussian-mixture": {"head.components": 2}},
)

TIGHTROPE = Preset(
    summary="tightropes: a minute on a laptop",
    like="small",
    steps=10_000,
    max_episode_steps=50,
    n_step=1,
)

UNSTEADY = Protocol("unsteady", epsilon=0.2, max_frames=30, episodes=20)
