"""Say what a lens is: its declaration, its parameters, its result, and how it is run.

Knows no single lens. Imports capturing, drawing, explaining and the top files.
"""
