"""What workers ask and are answered, and how operators see and direct them."""
