"""What one notebook needs and nobody else."""
