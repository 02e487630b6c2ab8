"""The printed form of headlines: spaces, marks, signs, capitals and spelling."""
