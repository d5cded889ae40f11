"""The file of a small study."""

import textwrap

TINY = """
steps = 600
[settings]
learn_start = 60
epsilon_steps = 100
replay_capacity = 150
target_every = 40
evaluation_every = 100
evaluation_episodes = 2
log_every = 20
checkpoint_every = 50
batch_size = 8
head_size = 16
mlp_sizes = [16]
"""


def study_file(folder, text, name="tiny"):
    """A study of tiny runs; `text` goes before and after its settings, parted by a line of dashes."""
    before, _, after = textwrap.dedent(text).partition("---")
    path = folder / f"{name}.toml"
    path.write_text(before + TINY + after)
    return path
