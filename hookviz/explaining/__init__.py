"""Explain where a number comes from: receptive fields, the sum behind a cell, gradients, ablations.

Numbers in, numbers out; pictures of them are made by `hookviz.drawing` and the lenses. Imports
capturing, hooking and the top files. It has a package for each topic.
"""
