"""What is proved: proof scripts, rational certificates and their independent checker."""
