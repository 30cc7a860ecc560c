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
from proactivebench_tasks.protocol.samples import Dataset

ENVIRONMENTS: Mapping[Dataset, type[Environment[Any]]] = {
    Dataset.ROD: RodEnvironment,
    Dataset.VSOD: VsodEnvironment,
    Dataset.MVPN: MvpnEnvironment,
    Dataset.IMAGENETC: ImagenetcEnvironment,
    Dataset.QUICKDRAW: QuickdrawEnvironment,
    Dataset.CHANGEIT: ChangeitEnvironment,
    Dataset.COCO: CocoEnvironment,
}
