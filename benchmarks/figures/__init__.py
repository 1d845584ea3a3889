"""What else is measured of callboard, beside the job: each file is a contender of its own."""
