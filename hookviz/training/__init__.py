"""Guards for a training loop of one's own: watch for NaN, clip gradients.

Works on a person's own module and not on a replica. Imports hooking and the top files.
"""
