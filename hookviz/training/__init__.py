"""Help a training loop: watch for NaN, clip gradients, record gradients and updates.

Works on a person's own module and not on a replica. Imports drawing, hooking and the top
files.
"""
