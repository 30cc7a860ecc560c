"""ProactiveBench (arXiv 2603.19466) for lmms-eval: does a model ask for help when it cannot see?"""
