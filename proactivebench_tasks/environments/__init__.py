"""The engine: what a ProactiveBench episode is, dataset by dataset. Pure values and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proactivebench_tasks.environments.changeit import ChangeitEnvironment
from proactivebench_tasks.environments.coco import CocoEnvironment
from proactivebench_tasks.environments.environment import Environment
from proactivebench_tasks.environments.imagenetc import ImagenetcEnvironment
from proactivebench_tasks.environments.mvpn import MvpnEnvironment
from proactivebench_tasks.environments.quickdraw import QuickdrawEnvironment
from proactivebench_tasks.environments.rod import RodEnvironment
from proactivebench_tasks.environments.vsod import VsodEnvironment
from proactivebench_tasks.protocol.samples import Dataset, Sample, parse

ENVIRONMENTS: Mapping[Dataset, type[Environment[Any, Any]]] = {
    environment.sample_type.dataset: environment
    for environment in (
        RodEnvironment,
        VsodEnvironment,
        MvpnEnvironment,
        ImagenetcEnvironment,
        QuickdrawEnvironment,
        ChangeitEnvironment,
        CocoEnvironment,
    )
}


def parse_sample(dataset: Dataset, row: object) -> Sample:
    """Validate one row of a dataset; ``DataError`` names every field at fault."""
    return parse(ENVIRONMENTS[dataset].sample_type, row)
