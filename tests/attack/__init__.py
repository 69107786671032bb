"""What a hostile user can do to a service that others use, tried on real processes."""
