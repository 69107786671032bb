"""Services and programs that live on Heat: they run against the program in the catalogue of a real OpenStack."""
