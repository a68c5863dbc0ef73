"""What few notebooks need and nobody else; what one alone needs lies beside it. Of ``speed`` also what
`fednb list --methods` shows."""
