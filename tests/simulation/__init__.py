"""The simulation ring: a seed replays a whole world — users, workers, a cloud with faults, crashes — on virtual time."""
