"""The colours that stand for HookViz itself, wherever a picture needs one that no map has."""

ACCENT, CONTRAST = "#1f9a9d", "#c2603c"
"""Of bars and frames, and of what goes the other way; both are seen on dark and on light."""

BELOW, ABOVE = "#3b7dc0", "#c94741"
"""Of bars below and above zero, as the maps have them: blue and red."""
