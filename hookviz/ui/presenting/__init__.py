"""Presenting: the view in front of a class, the slide list, and the link to it with its QR code.

Here belong what a link may hold, what a file of slides may hold, and the buttons for both; not how
the view looks (`presenting.css`) and which keys it has (`presenting.js`), nor the lessons.
"""
