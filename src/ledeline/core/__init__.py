"""What every other package uses: errors, progress, atomic files, checksums, seeded shuffling."""
