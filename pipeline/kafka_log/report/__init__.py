"""What a log holds, in lines and numbers for people and programs."""
