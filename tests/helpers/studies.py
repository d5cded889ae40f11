"""Write the file of a small study."""

import textwrap

TINY = """
steps = 400
[settings]
learning_starts = 60
epsilon_steps = 100
buffer_size = 150
target_update_interval = 40
evaluation_every = 100
evaluation_episodes = 2
log_every = 20
checkpoint_every = 50
batch_size = 8
head_size = 16
mlp_sizes = [16]
"""


def study_file(folder, text, name="tiny"):
    """Write a study of tiny runs; the parts of `text` around `---` go before and after its settings."""
    before, _, after = textwrap.dedent(text).partition("---")
    path = folder / f"{name}.toml"
    path.write_text(before + TINY + after)
    return path
