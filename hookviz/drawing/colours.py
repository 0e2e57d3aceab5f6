"""The colour that stands for HookViz itself, wherever a picture needs one that no map has."""

ACCENT = "#1f9a9d"
"""Teal, in every frame, histogram and first series; the page's style sheet has it too."""
