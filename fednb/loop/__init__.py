"""The federated loop: server, clients and what passes between them; work side by side. No method imports from here."""
