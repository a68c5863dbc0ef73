"""What the command line does, a file for each command. Nothing else imports it."""
