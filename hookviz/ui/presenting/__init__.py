"""Present to a class: the presenter's buttons, the slide list, and links to a view.

`presenting.css` has the look of the presenter's view, and `presenting.js` its keys.
"""
