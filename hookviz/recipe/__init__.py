"""A picture on the screen as a PyTorch script that draws the same picture without HookViz.

Writes code and runs nothing. Imports drawing, models and the top files.
"""
