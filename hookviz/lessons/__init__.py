"""Lessons: read text with live parts and questions from Markdown files, and print them.

Here belong what a lesson is, how its file is read and refused, the numbers that several live parts
show, and the sheet for print; not the live parts and the page (`hookviz.ui.lessons`).
"""
