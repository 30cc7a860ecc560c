"""Writes every YAML file of this folder, from one table: ``STUDIES``.

Run ``python task_yamls/generate.py`` after a change here, and commit what it writes. It deletes the
files that it wrote earlier and would no longer write: those that begin with ``HEADER``. A YAML file
of another origin it leaves alone; ``tests/test_task_yamls.py`` names it.

Add a study: one entry of ``STUDIES``. ``Study("hint", ALL, {"hint": True}, "One may ask.")`` means
that ``studies/hint`` holds, for each dataset, a task ``proactivebench-hint_<dataset>`` and its twin
on the demo data, ``proactivedemo-hint_<dataset>``, and over them the groups ``proactivebench-hint``
and ``proactivedemo-hint``. The kwargs are what the study changes in plain multiple choice: the
tasks' ``lmms_eval_specific_kwargs``, explained in ``proactivebench_tasks/transcripts/variant.py``.
A study with ``open_ended`` is built on the open-ended tasks instead, and its demo twins are judged
without a model. The sentence stands at the head of the study's base file.

``ALL`` are the published datasets, over which all means are. A dataset of your own has its tasks by
a study of its own: ``Study("mine", (Dataset.MINE,), {"mode": "normal"}, "A dataset of ours.")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, relpath
from typing import Literal

from proactivebench_tasks.protocol import published, task_names
from proactivebench_tasks.protocol.samples import Dataset
from proactivebench_tasks.results.metrics import MULTIPLE_CHOICE, OPEN_ENDED, Metric

FOLDER = Path(__file__).parent
HEADER = "# Written by task_yamls/generate.py; an edit made here is lost.\n"
ROWS = "proactivebench_tasks.data.prepared"

ALL = published.DATASETS
Kwargs = Mapping[str, bool | int | str]
Kind = Literal["mcqa", "oeg"]  # multiple choice, open-ended


@dataclass(frozen=True)
class Study:
    """An entry of the table; the docstring of this module says what it means."""

    name: str
    datasets: Sequence[Dataset]
    kwargs: Kwargs
    sentence: str


# fmt: off
STUDIES = (
    Study("reference", ALL, {"mode": "reference"},
          "Nothing hidden, nothing to ask for: how well the model knows the categories."),
    Study("hint", ALL, {"hint": True},
          "The dataset's hint in the prompt: does it help to be told that one may ask?"),
    Study("history", ALL, {"history": True},
          "Earlier turns (image, prompt, answer) stay in the conversation."),
    Study("icl", (Dataset.ROD, Dataset.MVPN), {"icl": 1},
          "A worked example before the sample, as the paper has it for these two datasets."),
    Study("icl-cot", (Dataset.ROD, Dataset.MVPN), {"icl": 1, "cot": True},
          "The worked example of icl, with the chain of thought before each of its suggestions."),
    Study("icl-generic", ALL, {"icl": 1, "icl_generic": True},
          "A worked example on every dataset, by a rule of ours (rollout/icl.py)."),
    Study("random", ALL, {"mode": "random"},
          "Meaningless suggestions: does a model that asks ask for anything?"),
    Study("hint-oeg", ALL, {"open_ended": True, "oeg_hint": True},
          "Open-ended, with the fixed sentence that asks the model to say how to help it."),
)
# fmt: on


def _metric_list(metrics: Iterable[Metric]) -> str:
    """What users compare, as a task lists it; no arrow is shown where neither is better."""
    lines = [
        f"  - {{metric: {metric.name}, aggregation: mean, "
        f"higher_is_better: {json.dumps(metric.higher_is_better)}}}\n"
        for metric in metrics
        if metric.is_listed
    ]
    return "metric_list:\n" + "".join(lines)


def _group_metrics(metrics: Iterable[Metric]) -> str:
    lines = [
        f"  - {{metric: {metric.name}, weight_by_size: false}}\n"
        for metric in metrics
        if metric.is_listed
    ]
    return "aggregate_metric_list:\n" + "".join(lines)


#: The files that no table makes: what all others include, and the group of the two groups.
BASES = {
    "group.yaml": """\
# Holds the groups and averages nothing: their numbers are not of one kind.
group: proactivebench
task:
  - proactivebench-mcqa
  - proactivebench-oeg
""",
    "mcqa/_mcqa.yaml": """\
# Everything that the multiple-choice tasks share. A task adds its name and its rows.
output_type: generate_until_agentic
dataset_path: json
test_split: test
doc_to_visual: !function proactivebench_tasks.hooks.doc_to_visual
doc_to_text: !function proactivebench_tasks.hooks.doc_to_text
doc_to_target: answer
process_results: !function proactivebench_tasks.hooks.process_results
generation_kwargs: {max_new_tokens: 50, temperature: 0, do_sample: false, until: []}
filter_list:
  - name: none
    filter:
      - function: !function proactivebench_tasks.hooks.AllRepeats
"""
    + _metric_list(MULTIPLE_CHOICE)
    + """\
metadata:
  version: 1
""",
    "mcqa/_mcqa_group.yaml": """\
# Everything that the groups of multiple-choice tasks share: the plain mean over their tasks.
"""
    + _group_metrics(MULTIPLE_CHOICE)
    + """\
metadata:
  version: 1
""",
    "oeg/_oeg.yaml": """\
# Everything that the open-ended tasks share: no list, one turn, sampling on, a judge afterwards.
include: ../mcqa/_mcqa.yaml
process_docs: !function proactivebench_tasks.hooks.official_subset
process_results: !function proactivebench_tasks.hooks.process_open_ended
lmms_eval_specific_kwargs:
  default:
    open_ended: true
generation_kwargs: {max_new_tokens: 4096, temperature: 1.0, do_sample: true, until: []}
filter_list:
  - name: none
    filter:
      - function: !function proactivebench_tasks.judge.stage.JudgeFilter
      - function: !function proactivebench_tasks.hooks.AllRepeats
"""
    + _metric_list(OPEN_ENDED),
    "oeg/_oeg_group.yaml": """\
# Everything that the groups of open-ended tasks share: the plain mean over their tasks.
"""
    + _group_metrics(OPEN_ENDED)
    + """\
metadata:
  version: 1
""",
    "demo/_demo_oeg.yaml": """\
# The open-ended demo: judged without a model, so that it runs anywhere.
include: ../oeg/_oeg.yaml
lmms_eval_specific_kwargs:
  default:
    open_ended: true
    judge: lexical
metadata:
  version: 1
  comparable: false
""",
}


def files(studies: Iterable[Study] = STUDIES) -> dict[str, str]:
    """The text of every file, by its path below this folder."""
    mcqa, oeg, demo_oeg = "mcqa/_mcqa.yaml", "oeg/_oeg.yaml", "demo/_demo_oeg.yaml"
    texts = (
        BASES
        | _tasks("mcqa", "mcqa/", mcqa, task_names.OFFICIAL, "mcqa")
        | _tasks("mcqa", "demo/", mcqa, task_names.DEMO, "mcqa")
        | _tasks("oeg", "oeg/", oeg, task_names.OFFICIAL, "oeg")
        | _tasks("oeg", "demo/oeg_", demo_oeg, task_names.DEMO, "oeg")
    )
    for study in studies:
        texts |= _study(study)
    return {path: HEADER + text for path, text in texts.items()}


def _study(study: Study) -> dict[str, str]:
    """A study's base files, and its tasks and group on the official and on the demo data."""
    kind: Kind = "oeg" if study.kwargs.get("open_ended") else "mcqa"
    folder = f"studies/{study.name}/"
    base = demo_base = f"{folder}_{study.name}.yaml"
    texts = {base: _base(study.sentence, base, f"{kind}/_{kind}.yaml", study.kwargs)}
    if kind == "oeg":
        demo_base, judged = f"{folder}_demo.yaml", {**study.kwargs, "judge": "lexical"}
        sentence = "The same on the demo data, judged without a model."
        texts[demo_base] = _base(sentence, demo_base, "demo/_demo_oeg.yaml", judged)
    return (
        texts
        | _tasks(kind, folder, base, task_names.OFFICIAL, study.name, study.datasets)
        | _tasks(kind, f"{folder}demo_", demo_base, task_names.DEMO, study.name, study.datasets)
    )


def _base(sentence: str, path: str, base: str, kwargs: Kwargs) -> str:
    """A base file that adds ``lmms_eval_specific_kwargs`` to another one."""
    lines = [f"    {key}: {json.dumps(value)}\n" for key, value in kwargs.items()]
    head = f"# {sentence}\n{_include(base, path)}lmms_eval_specific_kwargs:\n  default:\n"
    return head + "".join(lines)


def _tasks(
    kind: Kind, stem: str, base: str, family: str, study: str, datasets: Sequence[Dataset] = ALL
) -> dict[str, str]:
    """A study's task for each dataset, and a group of them. The paths of their files begin with
    ``stem``; the tasks include the file ``base``."""
    rows = f"{ROWS}.demo_" if family == task_names.DEMO else f"{ROWS}."
    names = {dataset: task_names.task(family, study, dataset) for dataset in datasets}
    texts = {
        f"{stem}{dataset.task}.yaml": f"{_include(base, stem)}task: {name}\n"
        f"dataset_kwargs:\n  data_files:\n    test: !function {rows}{dataset.task}\n"
        for dataset, name in names.items()
    }
    members = "".join(f"  - {name}\n" for name in names.values())
    group = f"group: {task_names.group(family, study)}\ntask:\n{members}"
    return texts | {f"{stem}group.yaml": _include(f"{kind}/_{kind}_group.yaml", stem) + group}


def _include(base: str, path: str) -> str:
    """The line by which the file at ``path`` takes over what ``base`` says."""
    return f"include: {relpath(base, dirname(path))}\n"


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write the files, and delete those that an earlier call wrote and this one does not."""
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    for file in folder.rglob("*.yaml"):
        ours = file.read_text(encoding="utf-8").startswith(HEADER)
        if ours and file.relative_to(folder).as_posix() not in texts:
            file.unlink()
            print(f"deleted {file}")
    print(f"wrote {len(texts)} files in {folder}")


if __name__ == "__main__":
    write(files(), FOLDER)
