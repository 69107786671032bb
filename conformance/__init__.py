"""Templates of others as a test: each is validated, planned, deployed on a simulated cloud, updated and deleted."""
