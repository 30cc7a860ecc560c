"""The built-in protocol: our own wording, for the demo tasks only.

Numbers made with it compare to nothing but each other.
"""

from __future__ import annotations

from proactivebench_tasks.protocol.protocol import Protocol
from proactivebench_tasks.protocol.samples import Dataset

BUILTIN = Protocol(
    version="builtin-1",
    origin=__name__,
    options_intro="\n\nYou can reply with any of these:\n",
    options_request="Reply with the letter of your pick and nothing else.",
    prefix={
        Dataset.VSOD: "You are looking at a single moment of a film clip.",
        Dataset.CHANGEIT: "You are looking at a single moment of a film clip.",
    },
    hint={
        "rod": "Tip: you may ask to have the blocks pushed aside.",
        "vsod": "Tip: you may ask for an earlier or a later moment of the clip.",
        "mvpn": "Tip: you may ask to see another side.",
        "imagenetc": "Tip: you may ask for a cleaner photo.",
        "quickdraw": "Tip: you may ask for more pen strokes.",
        "changeit": "Tip: you may ask for an earlier or a later moment of the clip.",
        "coco": "Tip: you may ask to look further to one side.",
        "coco_zoom": "Tip: you may ask to stand further back.",
    },
    reference_question={Dataset.ROD: "Which thing do you see here?"},
    chain_of_thought={
        Dataset.ROD: "The blocks are in the way, so they have to be pushed aside before I can "
        "tell. My pick:",
        Dataset.MVPN: "This side shows too little, so I have to see another one before I can "
        "tell. My pick:",
    },
    oeg_hint=" Should the picture be too poor for that, say which change to it would let you know.",
    judge_system=(
        "You mark replies. You get a question about a picture, a Python list of points, and a "
        "reply. Mark every point of the list: 1 if the reply makes it, in whatever words, "
        "0 if it does not or says the opposite. Finish with one line that holds the marks alone, "
        "in list order, with commas between them."
    ),
    judge_user="Question: {user_prompt}\nPoints: {correct_answers}\nReply: {generated_answer}",
    sample_ids=None,
)
