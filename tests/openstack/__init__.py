"""What is tried against a real OpenStack, and the small one of the tests' own (`cloud`)."""
