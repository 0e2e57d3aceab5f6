"""Passes with parts of a layer changed: patched from another image, ablated, masked.

Weights that are set to 0 belong into `pruning`.
"""
