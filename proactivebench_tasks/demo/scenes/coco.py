"""COCO: one picture of several things, seen through a crop that shows too little of one."""

import math

from proactivebench_tasks.demo.case import BACKDROPS, Case, Scene
from proactivebench_tasks.demo.draw import Canvas, mix
from proactivebench_tasks.demo.things import THINGS

WIDTH, HEIGHT = 320, 240
HALF = 52  # of the thing that is asked for
OTHER_HALF = 30
MARGIN = 6  # around the thing in the last crop
DIRECTIONS = ("left", "right", "up", "down", "zoom", "up_left", "right_down", "zoom")
QUESTIONS = (
    "Which thing is the camera pointed at?",
    "What is it that shows only in part at first?",
    "Which of these is in the scene?",
)
SUGGESTIONS = {
    "left": "Move the camera to the left.",
    "right": "Move the camera to the right.",
    "up": "Move the camera up.",
    "down": "Move the camera down.",
    "zoom": "Move farther from the object.",
}
