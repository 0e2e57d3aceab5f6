"""Present to a class: the presenter's view, the slide list, and the link to a view as QR code.

Here belong what a link may hold, what a file of slides may hold, and the buttons for both; not how
the view looks (`presenting.css`) and which keys it has (`presenting.js`), nor the lessons.
"""
