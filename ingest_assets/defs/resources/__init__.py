"""What assets are given: the home they work in and the runner that works for them."""
