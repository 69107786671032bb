"""The simulation ring: a seed replays a whole world — users, workers, a faulty cloud, crashes — on virtual time."""
