"""The script that Streamlit runs for every interaction."""

from hookviz.ui import page

page.show()
