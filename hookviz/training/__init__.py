"""For a training loop of one's own: watch for NaN, clip gradients, record how it goes.

Works on a person's own module and not on a replica. Imports drawing, hooking and the top
files.
"""
