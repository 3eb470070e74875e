"""What methods run on: objectives with exactly known constants, data loading and sharding."""
