"""The judge of open-ended generation: a language model marks which valid answers a text makes.

question.py   what is asked: prompt, valid answers, generated text
judges.py     what a judge is; server.py, local.py and lexical.py are the three there are
verdict.py    what its reply comes to
cache.py      every reply, kept on disk as it arrives
stage.py      the lmms-eval filter that puts these together
command.py    ``proactivebench judge``: the same stage for the samples of a finished run
"""
