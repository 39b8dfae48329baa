"""Files made to do harm, built on the spot: small here, huge or endless for who believes them."""
