"""What is on the screen as a PyTorch script that makes it anew without HookViz.

A picture of channels pixel by pixel, or the numbers of a lens. Writes code and runs nothing.
Imports capturing, drawing, models, synthesis's constants and the top files; a lens is handed over
by its name.
"""
