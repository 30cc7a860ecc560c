"""ProactiveBench (arXiv 2603.19466) for lmms-eval: does a model ask for help when it cannot see?"""

from pathlib import Path

if not Path(__file__).with_name("model_patches").is_dir():
    # A checkout, in which two of the packages lie beside this one (see setup.py). Python imports
    # it, and not what is installed, when `python -m lmms_eval` is run in it.
    __path__.append(str(Path(__file__).parents[1]))
