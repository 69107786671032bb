"""The storm on a real OpenStack: workers are killed and answers are lost while stacks are made, changed and deleted."""
