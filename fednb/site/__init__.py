"""The report as a site that people read: pages from executed notebooks."""
