"""What is asked about: the image, its content, its setting, its disk."""
