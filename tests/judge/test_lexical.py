"""The judge without a model: crude, but right about plain words."""

from __future__ import annotations

import pytest

from proactivebench_tasks.judge.lexical import LexicalJudge, makes
from proactivebench_tasks.judge.question import Question
from proactivebench_tasks.protocol.builtin import BUILTIN


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is a tree.", "A tree"),
        ("I think these are trees", "A tree"),
        ("Not a house. A tree!", "A tree"),
        ("Could you push the block aside?", "Move the blocks"),
        ("I cannot tell, please slide the blocks to the left", "Move the blocks"),
        ("Try another viewpoint: change the angle.", "Move the camera"),
        ("Wait for the bus to go past.", "Wait for the occlusion to disappear"),
        ("Please turn it", "Rotate the object"),
        ("Show me an earlier frame", "Rewind the video"),
        ("Zoom out and move away", "Move farther from the object"),
        ("Continue the drawing with more strokes", "Add more details to the drawing"),
        ("Sharpen it", "Deblur the photo"),
        ("MOVE THE CAMERA", "Move the camera"),
        ("I want you to move the camera", "Move the camera"),
        ("It is an elephant", "An elephant"),
        ("Move the camera to a different point in front of it", "Move the camera"),
        ("the plant pot", "A plant"),
        ("an ant, perhaps", "An ant"),
    ],
)
def test_text_makes_the_answer(text: str, answer: str) -> None:
    assert makes(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", "A tree"),
        ("It is a fish.", "A tree"),
        ("It is not a tree.", "A tree"),
        ("It isn't a tree", "A tree"),
        ("It isn\u2019t a tree", "A tree"),
        ("I dont think it is a tree", "A tree"),
        ("You can't move the camera", "Move the camera"),
        ("I wouldnt move the camera", "Move the camera"),
        ("I do not know.", "Move the blocks"),
        ("The blocks hide it.", "Move the blocks"),
        ("The camera is broken.", "Move the camera"),
        ("I cannot see it, and nothing should be moved", "Move the camera"),
        ("street trees", "A trench"),
    ],
)
def test_text_does_not_make_the_answer(text: str, answer: str) -> None:
    assert not makes(text, answer)


def test_replies_are_lines_of_marks_that_compare_to_nothing() -> None:
    question = Question(BUILTIN, "What is it?", "Move the blocks, A tree.", "It is a tree.")
    assert [reply.raw for _, reply in LexicalJudge().ask([question, question])] == ["0, 1"] * 2
    assert not LexicalJudge.comparable
