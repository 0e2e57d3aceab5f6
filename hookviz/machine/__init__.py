"""What this computer allows: its memory, its cores, and what a container leaves of them.

Imports nothing of HookViz. What HookViz does with the memory is `hookviz.serving`'s.
"""
