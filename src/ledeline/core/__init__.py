"""What every room stands on: errors, progress, atomic files, manifests, seeded order, caches."""
