"""Ask what this computer allows: memory, cores, a container's share of them, the app's packages.

Imports nothing of HookViz but its errors. What HookViz does with the memory is `hookviz.serving`'s.
"""
