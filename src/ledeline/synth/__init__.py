"""The synthetic newsroom: invented ledes with their headlines and gold alignments."""
