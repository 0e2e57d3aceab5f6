"""Lessons: read text with live parts and questions from Markdown files, and compute their parts.

Here belong what a lesson is, how its file is read and refused, what its live parts compute, and the
sheet for print; not how a part looks on the page (`hookviz.ui.lessons`).
"""
