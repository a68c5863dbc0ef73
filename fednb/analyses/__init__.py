"""What one notebook needs and nobody else; of ``speed`` also what `fednb list --methods` shows."""
