"""What can be added to a system with attention, one file each."""
