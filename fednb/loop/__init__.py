"""The federated loop: server, clients and what passes between them; executors. No method imports from here."""
