"""One boot read from the journal, kmsg, firmware or text: marks, attribution, rejection."""
