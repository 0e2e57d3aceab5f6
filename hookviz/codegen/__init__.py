"""Write what is on the screen as a PyTorch script that makes it anew without HookViz.

A picture of channels pixel by pixel, or the numbers of a lens. Writes code and runs nothing. Knows
no lens: each has a ``script`` of its own, made of the parts here. Imports synthesis, explaining and
the packages below.
"""
