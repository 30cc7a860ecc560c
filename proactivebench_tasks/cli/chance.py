"""Command ``proactivebench chance``: the level of a uniform guesser."""

from __future__ import annotations

from typing import Annotated

import typer

from proactivebench_tasks.data import rows
from proactivebench_tasks.data.prepared import prepared
from proactivebench_tasks.data.suite import Suite
from proactivebench_tasks.environments import chance as levels
from proactivebench_tasks.environments.environment import Mode
from proactivebench_tasks.protocol import published
from proactivebench_tasks.protocol.samples import Dataset


def chance(
    demo: Annotated[bool, typer.Option(help="For the bundled demo data.")] = False,
) -> None:
    """What a uniform guesser reaches, exactly, from the rows alone: acc and ps of each variant.

    Example: proactivebench chance --demo
    """
    suite = Suite.DEMO if demo else Suite.OFFICIAL
    samples = {
        each: [row.sample for row in rows.read(prepared(suite, each), each)] for each in Dataset
    }
    found = {
        mode: {
            each: levels.mean(levels.of_sample(sample, mode) for sample in samples[each])
            for each in Dataset
        }
        for mode in Mode
    }
    typer.echo(" " * 12 + "".join(f"{mode.value + ': acc':>16}{'ps':>7}" for mode in Mode))
    for each in Dataset:
        row = "".join(f"{found[m][each].acc:>16.2f}{found[m][each].ps:>7.3f}" for m in Mode)
        typer.echo(f"{each.task:<12}{row}")
    means = [levels.mean(found[mode][each] for each in published.DATASETS) for mode in Mode]
    typer.echo(f"{'mean':<12}" + "".join(f"{m.acc:>16.2f}{m.ps:>7.3f}" for m in means))
