"""Plays one sample of the bundled demo with the engine alone: no harness, no model, no images.

    python examples/episode_in_ten_lines.py

Prints what a model would be shown in each turn, the answer and its grades, and the result. The
player asks once, by letter, and then names the category.
"""

from proactivebench_tasks.data.rows import read
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.protocol.samples import Dataset

rows = read(Suite.DEMO.store.rows(Dataset.ROD), Dataset.ROD)
sample = next(iter(rows)).sample
episode = Episode(sample, Suite.DEMO.protocol)
while not episode.done:
    seen = episode.observe()
    turn = episode.step(sample.answer if episode.turns else "A")
    print(f"{seen.image_path}\n{seen.text}\n> {turn.answer}")
    print(f"as a suggestion: {turn.suggestion.value}, as a category: {turn.category.value}\n")
print(episode.summary())
