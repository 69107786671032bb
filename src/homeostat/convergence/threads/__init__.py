"""Threads of a worker: `periodic` for periodic tasks, `fair_turns` shared fairly by projects."""
