"""See or change a pass, on a private replica or a person's own network: the one home of hooks.

What is done with what a hook sees belongs to the packages above. Imports the top files.
"""
