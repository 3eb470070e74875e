"""What is known: claims, exact worst cases, contraction rates, closed forms, time lines and traffic."""
