"""Worked examples: other samples, solved as they should be, shown before the sample itself.

The paper has them for two datasets. ROD: a correct suggestion drawn at random, then the category.
MVP-N: suggestions until the informative view, then the category. The generic form, for all seven,
is ours: at least one suggestion, on until the category counts, then the category.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from proactivebench_tasks.environments import ENVIRONMENTS
from proactivebench_tasks.environments.environment import derived_seed
from proactivebench_tasks.environments.episode import Episode
from proactivebench_tasks.errors import HarnessError
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.rollout import documents
from proactivebench_tasks.rollout.documents import Document
from proactivebench_tasks.transcripts.conversation import Exchange
from proactivebench_tasks.transcripts.variant import Variant


def choose(doc: Document, pool: Sequence[Document], variant: Variant) -> tuple[Exchange, ...]:
    """``variant.icl`` worked examples for a document, from the others of its task.

    None shares the document's id or answer. Which they are depends on the document and the seed
    alone. Raises ``HarnessError`` when the variant asks for what the dataset does not have.
    """
    if not variant.icl:
        return ()
    dataset = Dataset.parse(doc["dataset"])
    in_the_paper = [each for each in Dataset if ENVIRONMENTS[each].has_worked_examples]
    if dataset not in in_the_paper and not variant.icl_generic:
        having = " and ".join(each.value for each in in_the_paper)
        raise HarnessError(
            f"icl: the paper has worked examples for {having}, not for {dataset.value}; "
            "icl_generic: true makes them by a rule of ours"
        )
    rng = random.Random(derived_seed("icl", variant.seed, doc["dataset"], doc["id"]))
    worked: list[Exchange] = []
    candidates = (other for other in _shuffled(pool, rng) if _may_serve(other, doc))
    solved = filter(
        None, (_solved(documents.episode(o, variant), variant, rng) for o in candidates)
    )
    for _ in range(variant.icl):
        if (exchanges := next(solved, None)) is None:
            raise HarnessError(
                f"icl: {variant.icl} examples asked for, but {dataset.value} has fewer samples "
                f"with another answer than sample {doc['id']}; lower icl"
            )
        worked += [exchanges[0], exchanges[-1]] if variant.icl_ends_only else exchanges
    return tuple(worked)


def _may_serve(other: Document, doc: Document) -> bool:
    return other["id"] != doc["id"] and other["answer"] != doc["answer"]


def _shuffled(pool: Sequence[Document], rng: random.Random) -> Iterator[Document]:
    """All documents in random order; reads no more of them than are taken."""
    seen: set[int] = set()
    while len(seen) < len(pool):
        index = rng.randrange(len(pool))
        if index not in seen:
            seen.add(index)
            yield pool[index]


def _solved(episode: Episode, variant: Variant, rng: random.Random) -> list[Exchange]:
    """An episode as it should go, turn by turn; nothing if it is too short to be solved so."""
    exchanges = []
    while not episode.done:
        seen = episode.observe()
        enough = episode.environment.asked_enough(episode.state)
        if enough or not episode.correct_suggestions:
            said = answer = episode.sample.answer
        else:
            answer = rng.choice(episode.correct_suggestions)
            said = f"{_thought(episode)} {answer}" if variant.cot else answer
        exchanges.append(Exchange(seen.image_path, seen.crop, seen.text, said))
        episode.step(answer)
    return exchanges if episode.summary().correct_prediction else []


def _thought(episode: Episode) -> str:
    texts = episode.protocol.chain_of_thought
    if episode.dataset not in texts:
        having = ", ".join(dataset.value for dataset in texts)
        raise HarnessError(f"cot: the protocol has a chain of thought for {having} only")
    return texts[episode.dataset]
