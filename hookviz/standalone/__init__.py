"""The explorer as one HTML file: what it is asked is answered beforehand, and kept in the file."""
