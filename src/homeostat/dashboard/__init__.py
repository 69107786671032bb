"""The dashboard: JavaScript modules for the browser, and their server.

`static/app.js` is the entry point; `static/pages` has a module for each page, `static/vendor` the libraries.
"""
