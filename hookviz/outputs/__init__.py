"""Hold what a network's output means: its declaration, the scores in it, and how they are read.

It knows no network and no hook: what a network states of itself is in `hookviz.models`.
"""
