"""What is printed for programs and what is stored, held against golden files."""
