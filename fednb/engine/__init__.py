"""The federated loop: server, clients and what passes between them. No method imports from here."""
