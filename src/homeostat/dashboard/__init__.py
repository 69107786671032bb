"""The dashboard: modules that a browser loads as they are, and the server of these files.

`static/app.js` begins; `static/pages` has a module for each page, `static/vendor` the libraries.
"""
