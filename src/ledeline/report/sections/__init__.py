"""The parts of the page, a file each; one that has nothing to say gives no markup."""
