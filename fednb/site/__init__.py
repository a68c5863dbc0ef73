"""The report as people read it: a site by Sphinx, or one page where that is not installed."""
