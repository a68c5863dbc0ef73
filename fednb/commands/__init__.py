"""What the command line does: notebooks found, planned, executed; reports; recording. Nothing else imports it."""
