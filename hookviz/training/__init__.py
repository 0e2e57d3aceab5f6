"""Help a training loop: watch for NaN, clip gradients, record gradients and updates.

Works on a person's own module. Imports drawing, hooking and the top files.
"""
