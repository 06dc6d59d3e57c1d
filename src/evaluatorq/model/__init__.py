"""Nouns: frozen records that everything else passes around. No behaviour beyond reading themselves."""
