"""What methods do: the words, the methods, compressors, topologies and the engines that run them."""
