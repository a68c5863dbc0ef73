"""The report as people read it: a site by Sphinx, or a page of links where that is not installed."""
